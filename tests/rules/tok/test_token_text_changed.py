from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.token_text_changed import check
from rule_subjects import SETTINGS, checkpoint, conversion, vocabulary

TOKENS = "tokenizer.ggml.tokens"
RIGHT = Vocabulary(
    model="gpt2",
    texts=["a", "b", None, " x", "<s>"],
    types=[1, 1, 5, 4, 3],
    other_texts={3: frozenset({"x"})},
    strays=frozenset({"<more>"}),
)
TYPES = [1, 1, 5, 4, 3, 5]


def said(texts: list[str], types: list[int] | None = None, *, kind: str = "gpt2") -> list[Outcome]:
    found = vocabulary(texts, kind=kind, types=types)
    return list(check(conversion(found, reference=checkpoint(vocabulary=RIGHT)), SETTINGS))


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "b", "[PAD2]", " x", "<s>"],
        ["a", "b", "[PAD2]", "x", "<s>"],
        # However padding is called, and however much of it there is.
        ["a", "b", "<dummy00002>", " x", "<s>", "<unk5>"],
        ["a", "b", "", " x", "<s>", "\u2581[PAD5]"],
        # Of an added token without an id nobody knows where it goes.
        ["a", "b", "<more>", " x", "<s>"],
    ],
)
def test_silent(texts: list[str]) -> None:
    assert said(texts) == []


def test_silent_for_unused_tokens_with_a_name() -> None:
    assert said(["a", "b", "<reserved>", " x", "<s>", "<reserved2>"], TYPES) == []


def test_silent_for_another_kind_of_tokenizer() -> None:
    assert said(["z"], kind="llama") == []


@pytest.mark.parametrize(
    ("texts", "how", "expected", "found"),
    [
        (["b", "a", "[PAD2]", " x", "<s>"], "2 of 5 differ, first id 0", "a", "b"),
        (["a", "\n", "[PAD2]", " x", "<s>"], "1 of 5 differ, first id 1", "b", "\n"),
        (["a", "b", "[PAD2]", "\u2581x", "<s>"], "1 of 5 differ, first id 3", " x", "\u2581x"),
        (
            ["a", "b", "[PAD2]", " x", "[PAD4]"],
            "1 of 5 differ, 1 of them are padding, first id 4",
            "<s>",
            "[PAD4]",
        ),
        (
            ["a", "b", "[PAD2]", " x"],
            "1 are behind the end of a list of 4, first id 4",
            "<s>",
            None,
        ),
    ],
)
def test_fires(texts: list[str], how: str, expected: str, found: str | None) -> None:
    shown = "none" if found is None else ascii(found)
    assert said(texts) == [
        Hit(
            message=f"needs the reference's tokens, {how}: expected {expected!r}, found {shown}",
            where=Where(key=TOKENS),
            expected=expected,
            actual=found,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_a_token_that_the_reference_has_not() -> None:
    assert said(["a", "b", "[PAD2]", " x", "<s>", "<tool>"], [1, 1, 5, 4, 3, 3]) == [
        Hit(
            message="needs padding where the reference has no token, 1 of 6 ids have one, "
            "first id 5: '<tool>'",
            where=Where(key=TOKENS),
            expected=None,
            actual="<tool>",
            origin=Origin.KEY,
            level=Severity.WARNING,
            repair=Reconvert(hint="if that token wasn't added on purpose"),
        )
    ]


def test_a_long_token_is_shown_in_part() -> None:
    [hit] = said(["a", "b", "[PAD2]", " x", "z" * 99])
    assert isinstance(hit, Hit)
    assert hit.message.endswith(f"found '{'z' * 40}...'")

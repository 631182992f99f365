from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.merge_malformed import check
from rule_subjects import LLAMA, SETTINGS, model, vocabulary

TEXTS = ["a", "b", "ab", "abb"]
MERGES = "tokenizer.ggml.merges"


def said(merges: list[str], *, kind: str = "gpt2", pre: str = "gpt-2") -> list[Outcome]:
    found = vocabulary(TEXTS, {"pre": pre, "merges": (ValueType.STRING, merges)}, kind=kind)
    return list(check(model(found), SETTINGS))


def test_silent() -> None:
    assert said(["a b", "ab b"]) == []
    assert said(["ab b", "a b", "a bb"]) == []
    assert said(["odd"], kind="llama") == []
    assert said([], pre="kimi-k2") == []
    assert list(check(model(LLAMA), SETTINGS)) == []


@pytest.mark.parametrize(
    ("merges", "how", "actual", "expected"),
    [
        (
            ["a b", "ab"],
            "merges that make tokens, 1 of 2 don't, first rank 1: 'ab', no two parts",
            "ab",
            "two parts that make a token",
        ),
        (
            ["b a", "a b", "b b"],
            "merges that make tokens, 2 of 3 don't, first rank 0: 'b a', 'ba' is no token",
            "b a",
            "two parts that make a token",
        ),
        (
            ["a b", " ab"],
            "merges that make tokens, 1 of 2 don't, first rank 1: ' ab', no two parts",
            " ab",
            "two parts that make a token",
        ),
        (
            [" a b", "a b"],
            "merges that make tokens, 1 of 2 don't, first rank 0: ' a b', ' ab' is no token",
            " a b",
            "two parts that make a token",
        ),
        ([], "merges, the list is empty", None, "at least one"),
    ],
)
def test_fires(merges: list[str], how: str, actual: str | None, expected: str) -> None:
    assert said(merges) == [
        Hit(
            message=f"needs {how}",
            where=Where(key=MERGES),
            expected=expected,
            actual=actual,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("tokenizer.ggml.tokens",),
        )
    ]

from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.token_type_changed import check
from rule_subjects import SETTINGS, checkpoint, conversion, vocabulary

TYPES = "tokenizer.ggml.token_type"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
TEXTS = ["a", "<unk>", "<s>", "<tag>", "[PAD4]", "<0x0A>", "<|im_end|>", "<|message|>", "x"]
RIGHT = Vocabulary(
    model="llama",
    texts=[*TEXTS[:4], None, *TEXTS[5:8], "y"],
    types=[NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE, CONTROL, CONTROL, NORMAL],
    other_types={1: frozenset({UNKNOWN, CONTROL})},
)
#: As they should be.
STORED = list(RIGHT.types)


def said(types: list[int] | None, *, kind: str = "llama") -> list[Outcome]:
    found = vocabulary(TEXTS, kind=kind, types=types)
    return list(check(conversion(found, reference=checkpoint(vocabulary=RIGHT)), SETTINGS))


def changed(id_: int, type_: int) -> list[int]:
    return [*STORED[:id_], type_, *STORED[id_ + 1 :]]


@pytest.mark.parametrize(
    "types",
    [
        STORED,
        # Either is right; padding is nothing; gpt-oss' are shown whatever their type is; of
        # a token with another text nobody knows.
        changed(1, CONTROL),
        changed(4, NORMAL),
        changed(7, USER_DEFINED),
        changed(8, CONTROL),
    ],
)
def test_silent(types: list[int]) -> None:
    assert said(types) == []


def test_silent_for_another_kind_and_for_types_that_are_no_list() -> None:
    assert said([NORMAL] * 9, kind="gpt2") == []
    found = vocabulary(TEXTS, {"token_type": (ValueType.UINT32, 1)}, kind="llama")
    subject = conversion(found, reference=checkpoint(vocabulary=RIGHT))
    assert list(check(subject, SETTINGS)) == []


SPLIT = "a prompt that holds one is taken apart"


@pytest.mark.parametrize(
    ("id_", "type_", "level", "names", "effects"),
    [
        (2, NORMAL, "error", "CONTROL NORMAL", [SPLIT]),
        (2, 0, "error", "CONTROL UNDEFINED", [SPLIT]),
        (2, USER_DEFINED, "warning", "CONTROL USER_DEFINED", ["they are printed, and text that looks like one becomes one"]),
        (3, NORMAL, "error", "USER_DEFINED NORMAL", [SPLIT]),
        (3, CONTROL, "warning", "USER_DEFINED CONTROL", ["what they stand for is never printed"]),
        (0, CONTROL, "error", "NORMAL CONTROL", ["what they stand for is never printed"]),
        (0, USER_DEFINED, "warning", "NORMAL USER_DEFINED", ["they are cut out of text before it is split"]),
        (5, NORMAL, "error", "BYTE NORMAL", ["bytes without a token of their own are lost"]),
        (1, NORMAL, "warning", "UNKNOWN NORMAL", ["text without a token is another one's"]),
        (2, 99, "error", "CONTROL 99", [SPLIT]),
    ],
)  # fmt: skip
def test_fires(id_: int, type_: int, level: str, names: str, effects: list[str]) -> None:
    expected, actual = names.split()
    assert said(changed(id_, type_)) == [
        Hit(
            message="needs the types of the reference's flags, 1 of 9 tokens have another, first id "
            f"{id_} ({TEXTS[id_]!r}): expected {expected}, found {actual}",
            where=Where(key=TYPES),
            expected=expected,
            actual=actual,
            origin=Origin.KEY,
            level=Severity(level),
            repair=Reconvert(hint="no metadata tool changes items of a list"),
            consequences=tuple(f"1 {expected} stored as {actual}: {each}" for each in effects),
        )
    ]


def test_what_llama_cpp_heals_by_its_text_is_a_warning_that_says_so() -> None:
    [hit] = said(changed(6, NORMAL))
    assert isinstance(hit, Hit)
    assert hit.level is Severity.WARNING
    assert hit.consequences == (
        f"1 CONTROL stored as NORMAL: {SPLIT}",
        "llama.cpp takes 1 of them for control tokens by their text, others don't",
    )


def test_types_that_are_absent_make_all_tokens_normal() -> None:
    [hit] = said(None)
    assert isinstance(hit, Hit)
    assert (hit.level, hit.origin) == (Severity.ERROR, Origin.RUNTIME_DEFAULT)
    assert hit.message.startswith("needs the types of the reference's flags, 5 of 9 tokens")
    assert hit.message.endswith(f"expected CONTROL, found NORMAL: {TYPES} is absent")

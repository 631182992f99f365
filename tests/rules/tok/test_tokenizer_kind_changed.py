from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.fields import Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.tokenizer_kind_changed import check
from rule_subjects import LLAMA, SETTINGS, checkpoint, conversion, vocabulary

MODEL = "tokenizer.ggml.model"


def said(found: str, right: Vocabulary | Absent) -> list[Outcome]:
    subject = conversion(vocabulary(["a"], kind=found), reference=checkpoint(vocabulary=right))
    return list(check(subject, SETTINGS))


def of(kind: str) -> Vocabulary:
    return Vocabulary(model=kind, texts=["a"], types=[1])


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "t5", "gemma4"])
def test_silent_for_the_kind_of_the_reference(kind: str) -> None:
    assert said(kind, of(kind)) == []


def test_silent_where_nobody_knows() -> None:
    assert said("llama", Absent("a card")) == []
    reference = checkpoint(vocabulary=of("gpt2"))
    assert list(check(conversion(LLAMA, reference=reference), SETTINGS)) == []


@pytest.mark.parametrize(
    ("found", "expected", "effect"),
    [
        ("llama", "gpt2", "text becomes other tokens"),
        ("gpt2", "llama", "text becomes other tokens"),
        ("none", "gpt2", "there is no vocabulary"),
    ],
)
def test_fires(found: str, expected: str, effect: str) -> None:
    assert said(found, of(expected)) == [
        Hit(
            message=f"needs a tokenizer of kind {expected!r}, {MODEL} is {found!r}: {effect}",
            where=Where(key=MODEL),
            expected=expected,
            actual=found,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]

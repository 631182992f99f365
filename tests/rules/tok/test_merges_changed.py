from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.merges_changed import check
from rule_subjects import SETTINGS, checkpoint, conversion, vocabulary

MERGES = "tokenizer.ggml.merges"


def said(merges: list[str] | None, right: list[str] | None, *, kind: str = "gpt2") -> list[Outcome]:
    others: dict[str, FieldValue] = {} if merges is None else {"merges": (ValueType.STRING, merges)}
    found = vocabulary(["a", "b"], others, kind=kind)
    wanted = Vocabulary(model="gpt2", texts=["a", "b"], types=[1, 1], merges=right)
    return list(check(conversion(found, reference=checkpoint(vocabulary=wanted)), SETTINGS))


def test_silent() -> None:
    assert said(["a b", "c d"], ["a b", "c d"]) == []
    # Without merges llama.cpp refuses the file (TOK008); a reference without has none to compare.
    assert said(None, ["a b"]) == []
    assert said(["a b"], None) == []
    assert said(["b a"], ["a b"], kind="llama") == []


@pytest.mark.parametrize(
    ("merges", "right", "how", "first"),
    [
        (["a b"], ["a b", "c d"], "1 of 2 are lost and 0 added", (1, "c d", None)),
        (["c d", "a b"], ["a b", "c d"], "the 2 are in another order", (0, "a b", "c d")),
        (["a b", "x y"], ["a b", "c d"], "1 of 2 are lost and 1 added", (1, "c d", "x y")),
        (["a b", "a b"], ["a b"], "2 stand where 1 should", (1, None, "a b")),
    ],
)
def test_fires(
    merges: list[str], right: list[str], how: str, first: tuple[int, str | None, str | None]
) -> None:
    rank, expected, actual = first
    shown = ["none" if text is None else repr(text) for text in (expected, actual)]
    assert said(merges, right) == [
        Hit(
            message=f"needs the reference's merges, {how}, first rank {rank}: expected {shown[0]}, "
            f"found {shown[1]}",
            where=Where(key=MERGES),
            expected=expected,
            actual=actual,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]

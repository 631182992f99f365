from __future__ import annotations

import math

import pytest

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.token_scores_changed import check
from rule_subjects import SETTINGS, checkpoint, conversion, vocabulary

SCORES = "tokenizer.ggml.scores"
TEXTS = ["<s>", "a", "b", "c"]
RIGHT = [0.0, -1.0, -2.0, -3.0]


def said(
    scores: list[float], right: list[float] | None = RIGHT, *, kind: str = "llama"
) -> list[Outcome]:
    found = vocabulary(TEXTS, {"scores": (ValueType.FLOAT32, scores)}, kind=kind)
    wanted = Vocabulary(
        model="llama", texts=["<s>", "a", "b", "other"], types=[3, 1, 1, 1], scores=right
    )
    return list(check(conversion(found, reference=checkpoint(vocabulary=wanted)), SETTINGS))


def test_silent() -> None:
    assert said(RIGHT) == []
    assert said([0.0, -1.0 - 5e-7, -2.0, -3.0]) == []
    # Nobody splits by a control token's score; a token with another text is told elsewhere.
    assert said([-1000.0, -1.0, -2.0, 5.0]) == []
    # One for all says nothing.
    assert said(RIGHT, [-1000.0] * 4) == []
    assert said(RIGHT, None) == []
    assert said([0.0] * 4, kind="gpt2") == []


@pytest.mark.parametrize(
    ("scores", "many", "id_", "text", "expected", "actual"),
    [
        ([0.0] * 4, 2, 1, "a", -1.0, 0.0),
        ([0.0, -1.0, -1.0, -3.0], 1, 2, "b", -2.0, -1.0),
    ],
)
def test_fires(
    scores: list[float], many: int, id_: int, text: str, expected: float, actual: float
) -> None:
    assert said(scores) == [
        Hit(
            message=f"needs the reference's scores, {many} of 4 tokens have another, first id {id_} "
            f"({text!r}): expected {expected:g}, found {actual:g}",
            where=Where(key=SCORES),
            expected=expected,
            actual=actual,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_what_is_no_number() -> None:
    [hit] = said([0.0, math.nan, -2.0, -3.0])
    assert isinstance(hit, Hit)
    assert "1 of 4" in hit.message

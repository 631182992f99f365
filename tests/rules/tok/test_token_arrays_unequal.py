from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.token_arrays_unequal import check
from rule_subjects import SETTINGS, model, tokens

SCORES, TYPES = "tokenizer.ggml.scores", "tokenizer.ggml.token_type"


@pytest.mark.parametrize(
    "arrays",
    [
        # BPE has neither by right.
        {},
        {SCORES: [0.0] * 3, TYPES: [1] * 3},
        {TYPES: [1] * 3},
        {"tokenizer.ggml.merges": ["a b"]},
    ],
)
def test_silent(arrays: dict[str, FieldValue]) -> None:
    assert list(check(model({**tokens(3), **arrays}), SETTINGS)) == []


def test_silent_without_tokens() -> None:
    assert list(check(model({"general.architecture": "llama", SCORES: [0.0]}), SETTINGS)) == []


UNEQUAL: list[tuple[str, FieldValue]] = [
    (SCORES, [0.0] * 2),
    (SCORES, [0.0] * 4),
    (TYPES, [1] * 2),
    (TYPES, (ValueType.INT32, ())),
]


@pytest.mark.parametrize(("key", "items"), UNEQUAL)
def test_fires(key: str, items: FieldValue) -> None:
    right: dict[str, FieldValue] = {SCORES: [0.0] * 3, TYPES: [1] * 3}
    subject = model({**tokens(3), **right, key: items})
    array = subject.gguf.array(key)
    assert array is not None
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs one item for each of 3 tokens, {key} has {array.count}",
            where=Where(key=key, offset=array.offset),
            expected=3,
            actual=array.count,
            unit="item",
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_both_lists_are_looked_at() -> None:
    both = model({**tokens(3), SCORES: [0.0], TYPES: [1]})
    keys = [hit.where.key for hit in check(both, SETTINGS) if isinstance(hit, Hit)]
    assert keys == [SCORES, TYPES]


@pytest.mark.parametrize(
    ("rows", "also"),
    [(3, ("tokenizer.ggml.tokens",)), (2, ()), (4, ())],
    ids=["the tokens are wrong", "the scores are wrong", "both are"],
)
def test_the_embedding_says_which_list_is_wrong(rows: int, also: tuple[str, ...]) -> None:
    embedding = [("token_embd.weight", (64, rows), "F32")]
    subject = model({**tokens(2), SCORES: [0.0] * 3}, embedding)
    assert [hit.also for hit in check(subject, SETTINGS) if isinstance(hit, Hit)] == [also]

from __future__ import annotations

import math
from typing import Literal

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue, make_gguf
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import SCORES, TYPES
from gguf_audit_rules.tok.token_value_invalid import check
from rule_subjects import LLAMA, SETTINGS, model, model_of, tokens


def types(*items: int) -> FieldValue:
    return (ValueType.INT32, items)


def scores(*items: float) -> FieldValue:
    return (ValueType.FLOAT32, items)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("llama", {}),
        ("gpt2", {TYPES: types(0, 1, 2, 3, 4, 5, 6)}),
        ("llama", {SCORES: scores(0.0, -math.inf, -1e4, 0.0, 1.0, 2.0, 3.0)}),
        # Not split by score, and of a type that llama.cpp refuses.
        ("gpt2", {SCORES: scores(0.0, math.nan)}),
        ("gpt2", {TYPES: (ValueType.UINT32, [99])}),
        ("gpt2", {TYPES: 99, SCORES: math.nan}),
    ],
)
def test_silent(kind: str, keys: dict[str, FieldValue]) -> None:
    assert list(check(model({**tokens(7, kind), **keys}), SETTINGS)) == []


def test_silent_without_tokens() -> None:
    assert list(check(model({**LLAMA, TYPES: types(99)}), SETTINGS)) == []


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ((1, 1, 99), "99 for token 2"),
        ((-1, 1, 1), "-1 for token 0"),
        ((1, 7, -1), "7 for token 1 (and 1 more)"),
    ],
)
def test_fires_for_a_type_that_there_is_not(items: tuple[int, ...], found: str) -> None:
    subject = model({**tokens(3), TYPES: types(*items)})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs a type from 0 to 6 for each token, {TYPES} has {found}: llama.cpp "
            "takes it for undefined and shows no text for it",
            where=Where(key=TYPES),
            expected="a type from 0 to 6",
            actual=int(found.split()[0]),
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="no metadata tool can change one item of a list"),
        )
    ]


@pytest.mark.parametrize("kind", ["llama", "t5", "plamo2"])
def test_fires_for_a_score_that_is_no_number(kind: str) -> None:
    subject = model({**tokens(3, kind), SCORES: scores(0.0, -1.0, math.nan)})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs a number for each token, {SCORES} has nan for token 2: which tokens "
            "llama.cpp makes of a text depends on the order that it looks in",
            where=Where(key=SCORES),
            expected="a number",
            actual="nan",
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="no metadata tool can change one item of a list"),
        )
    ]


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_the_last_of_many_in_any_byte_order(byte_order: Literal["little", "big"]) -> None:
    many = 100_000
    keys = {
        **tokens(many, "llama"),
        TYPES: types(*[1] * (many - 1), 7),
        SCORES: scores(*[-1.5] * (many - 1), math.nan),
    }
    subject = model_of(make_gguf(keys, byte_order=byte_order))
    hits = [hit for hit in check(subject, SETTINGS) if isinstance(hit, Hit)]
    assert [(hit.where.key, hit.actual) for hit in hits] == [(TYPES, 7), (SCORES, "nan")]
    assert all(f"for token {many - 1}:" in hit.message for hit in hits)

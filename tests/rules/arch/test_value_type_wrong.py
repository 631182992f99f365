from __future__ import annotations

import math

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.arch.value_type_wrong import check
from rule_subjects import LLAMA, SETTINGS, model, offset


def hits(**changes: FieldValue) -> list[tuple[str | None, object, object]]:
    found = {f"llama.{name.replace('__', '.')}": value for name, value in changes.items()}
    subject = model({**LLAMA, **found})
    return [
        (hit.where.key, hit.expected, hit.actual)
        for hit in check(subject, SETTINGS)
        if isinstance(hit, Hit)
    ]


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"attention__head_count_kv": [2, 2, 2]},
        {"expert_used_count": (ValueType.UINT32, 2)},
        {"attention__causal": False},
        # Nothing of this architecture reads these.
        {"expert_weights_scale": (ValueType.FLOAT64, 1.0)},
        {"no_such_key": (ValueType.UINT64, 1)},
    ],
)
def test_silent(right: dict[str, FieldValue]) -> None:
    assert hits(**right) == []


def test_silent_for_an_unknown_architecture() -> None:
    assert list(check(model({"odd.block_count": (ValueType.INT32, 3)}), SETTINGS)) == []


def test_fires_with_its_place() -> None:
    key = "llama.expert_group_count"
    subject = model({**LLAMA, key: (ValueType.INT32, 0)})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs u32, {key} is int32: llama.cpp refuses the file",
            where=Where(key=key, offset=offset(subject, key)),
            expected="u32",
            actual="int32",
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="or write the key again with the right type"),
        )
    ]


@pytest.mark.parametrize(
    ("name", "value", "expected", "actual"),
    [
        ("rope__freq_base", (ValueType.UINT32, 10000), "f32", "uint32"),
        ("rope__freq_base", (ValueType.FLOAT64, 1e4), "f32", "float64"),
        ("attention__causal", (ValueType.UINT8, 0), "bool", "uint8"),
        ("rope__scaling__type", (ValueType.UINT32, 1), "str", "uint32"),
        ("expert_count", [1, 2], "u32", "an array of int32"),
        (
            "feed_forward_length",
            [1.0, 2.0, 3.0],
            "u32, or an array of u32, i32 or bool",
            "an array of float32",
        ),
    ],
)
def test_fires_for_each_kind(name: str, value: FieldValue, expected: str, actual: str) -> None:
    assert hits(**{name: value}) == [(f"llama.{name.replace('__', '.')}", expected, actual)]


def test_keys_without_architecture_are_looked_at_too() -> None:
    subject = model(
        {
            **LLAMA,
            "general.file_type": (ValueType.INT32, 1),
            "tokenizer.ggml.bos_token_id": (ValueType.INT32, 1),
            "tokenizer.ggml.add_bos_token": (ValueType.UINT32, 1),
        }
    )
    assert [hit.where.key for hit in check(subject, SETTINGS) if isinstance(hit, Hit)] == [
        "general.file_type",
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.add_bos_token",
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_fires_for_what_is_no_number(value: float) -> None:
    key = "llama.rope.freq_base"
    subject = model({**LLAMA, key: value})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs a finite number, {key} is {value}: llama.cpp loads the file and "
            "computes with it",
            where=Where(key=key, offset=offset(subject, key)),
            expected="a finite number",
            actual=str(value),
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_items_are_numbers_too() -> None:
    key = "step35.swiglu_clamp_exp"
    for items, found in (
        ([7.0, 0.0], []),
        ([7.0, math.inf], []),
        ([math.inf, math.nan], [(key, "inf")]),
    ):
        subject = model({"step35.block_count": 2, key: items})
        hits = [hit for hit in check(subject, SETTINGS) if isinstance(hit, Hit)]
        assert [(hit.where.key, hit.actual) for hit in hits] == found
        assert all(f"{key} has inf" in hit.message for hit in hits)


def test_what_nobody_reads_may_be_anything() -> None:
    assert hits(residual_scale=math.nan) == []


@pytest.mark.parametrize("items", [[8, 4, 4], [8, 4, 4, 0, 0]])
def test_rotary_sections_are_four(items: list[int]) -> None:
    key = "qwen35.rope.dimension_sections"
    right = model({"qwen35.block_count": 2, key: [8, 4, 4, 0]})
    assert list(check(right, SETTINGS)) == []
    subject = model({"qwen35.block_count": 2, key: items})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs 4 items, {key} has {len(items)}: llama.cpp refuses the file",
            where=Where(key=key, offset=offset(subject, key)),
            expected=4,
            actual=len(items),
            unit="item",
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(
    ("value", "state", "byte"),
    [
        ((ValueType.BOOL, 2), "is", 2),
        ((ValueType.BOOL, [1, 0, 255, 3]), "has", 255),
    ],
)
def test_fires_for_what_is_neither_true_nor_false(value: FieldValue, state: str, byte: int) -> None:
    key = "gemma4.attention.sliding_window_pattern"
    if state == "is":
        key = "gemma4.attention.causal"
    subject = model({"gemma4.block_count": 4, key: value})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs true or false, stored as 1 or 0, {key} {state} the byte {byte}: "
            "engines don't agree on what that is",
            where=Where(key=key, offset=offset(subject, key)),
            expected="0 or 1",
            actual=byte,
            origin=Origin.KEY,
            level=Severity.WARNING,
            repair=Reconvert(),
        )
    ]


def test_silent_about_bools_in_a_list() -> None:
    key = "gemma4.attention.sliding_window_pattern"
    subject = model({"gemma4.block_count": 4, key: [True, False, True, True]})
    assert list(check(subject, SETTINGS)) == []

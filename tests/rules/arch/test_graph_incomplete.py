from __future__ import annotations

import pytest

from gguf_audit.layout import Full, Recurrent, StatePart
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.arch.graph_incomplete import COUNT, check
from rule_subjects import LLAMA, SETTINGS, layers, model

STATE = Recurrent(parts=(StatePart(name="conv", elements=8),))
LAYOUT = layers(STATE, Full(kv_heads=1, key_length=8, value_length=8), STATE)
LINEAR = [f"blk.{index}.{name}.weight" for index in (0, 2) for name in ("attn_qkv", "attn_gate")]


def said(*tensors: str, architecture: str = "qwen35") -> list[object]:
    subject = model(
        {f"{architecture}.block_count": 3},
        [(name, (8, 8), "F32") for name in ("token_embd.weight", *tensors)],
        implied=LAYOUT,
    )
    return list(check(subject, SETTINGS))


def test_silent_where_all_is_there() -> None:
    assert said(*LINEAR) == []


def test_silent_for_other_architectures() -> None:
    assert said(architecture="qwen3next") == []
    assert list(check(model(LLAMA), SETTINGS)) == []


def test_silent_for_a_vocabulary() -> None:
    assert list(check(model({"qwen35.block_count": 3}, implied=LAYOUT), SETTINGS)) == []
    assert list(check(model({"bert.block_count": 3}), SETTINGS)) == []


def test_fires_for_the_last_layer() -> None:
    assert said(*LINEAR[:-1]) == [
        Hit(
            message="needs attn_qkv and attn_gate in 2 layers with linear attention, 1 absent "
            "(blk.2.attn_gate.weight): llama.cpp loads the file and dies of it",
            where=Where(tensor="blk.2.attn_gate.weight"),
            expected=4,
            actual=3,
            unit="tensor",
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("blk.2.attn_gate.weight",),
        )
    ]


def bert(architecture: str, keys: dict[str, FieldValue]) -> list[object]:
    subject = model(
        {f"{architecture}.block_count": 1, **keys}, [("token_types.weight", (8, 2), "F32")]
    )
    return list(check(subject, SETTINGS))


def test_silent_where_token_types_are_counted() -> None:
    assert bert("bert", {COUNT: 2}) == []


@pytest.mark.parametrize(
    ("architecture", "verdict"), [("bert", "refuses the file"), ("jina-bert-v2", "dies of it")]
)
def test_fires_for_a_lost_number_of_token_types(architecture: str, verdict: str) -> None:
    assert bert(architecture, {}) == [
        Hit(
            message=f"needs the number of token types, 2, {COUNT} is absent: llama.cpp {verdict}",
            where=Where(key=COUNT),
            expected=2,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]

from __future__ import annotations

import pytest

from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import MERGES, MODEL, PRE, TOKENS
from gguf_audit_rules.tok.vocabulary_incomplete import check
from rule_subjects import LLAMA, SETTINGS, model, tokens

Tensors = list[tuple[str, tuple[int, ...], str]]
WEIGHTS: Tensors = [("output_norm.weight", (64,), "F32"), ("blk.0.attn_q.weight", (64, 64), "F32")]
EMBEDDING: Tensors = [("token_embd.weight", (64, 3), "F32")]
MERGED: dict[str, FieldValue] = {MERGES: (ValueType.STRING, ["a b"])}


@pytest.mark.parametrize("tensors", [WEIGHTS, []], ids=["model", "vocabulary"])
@pytest.mark.parametrize(
    "whole",
    [
        {**tokens(3), **MERGED},
        {**tokens(3), PRE: "kimi-k2"},
        {**tokens(3, "gemma4"), **MERGED},
        *(tokens(3, kind) for kind in ("llama", "bert", "t5", "rwkv", "plamo2", "test")),
        {**LLAMA, MODEL: "none"},
        {**LLAMA, MODEL: "no_vocab"},
    ],
)
def test_silent_for_a_whole_vocabulary(whole: dict[str, FieldValue], tensors: Tensors) -> None:
    assert list(check(model(whole, tensors), SETTINGS)) == []


@pytest.mark.parametrize("tensors", [[], [("v.patch_embd.weight", (64, 4), "F32")]])
def test_silent_where_neither_weights_nor_vocabulary_are(tensors: Tensors) -> None:
    assert list(check(model(LLAMA, tensors), SETTINGS)) == []


def test_silent_for_an_architecture_that_nobody_knows() -> None:
    assert list(check(model({"general.architecture": "odd"}, WEIGHTS), SETTINGS)) == []


MISSING: list[tuple[dict[str, FieldValue], Tensors, list[str]]] = [
    ({**LLAMA}, WEIGHTS, [MODEL, TOKENS]),
    ({**LLAMA}, EMBEDDING, [MODEL, TOKENS]),
    ({**LLAMA, MODEL: "llama"}, WEIGHTS, [TOKENS]),
    # A part of a vocabulary is one that got lost.
    ({**LLAMA, MODEL: "llama"}, [], [TOKENS]),
    ({**LLAMA, PRE: "gpt-2"}, [], [MODEL, TOKENS]),
    ({**LLAMA, TOKENS: ["a", "b", "c"]}, WEIGHTS, [MODEL]),
    ({**LLAMA, MODEL: "gpt2", PRE: "gpt-2"}, WEIGHTS, [TOKENS, MERGES]),
    ({**tokens(3), PRE: "gpt-2"}, WEIGHTS, [MERGES]),
    ({**tokens(3), PRE: ""}, WEIGHTS, [MERGES]),
    ({**tokens(3)}, [], [MERGES]),
    ({**tokens(3, "gemma4"), PRE: "kimi-k2"}, WEIGHTS, [MERGES]),
]


@pytest.mark.parametrize(("values", "tensors", "missing"), MISSING)
def test_fires(values: dict[str, FieldValue], tensors: Tensors, missing: list[str]) -> None:
    verb = "are" if missing[1:] else "is"
    assert list(check(model(values, tensors), SETTINGS)) == [
        Hit(
            message=f"needs a whole vocabulary, {', '.join(missing)} {verb} absent: "
            "llama.cpp refuses the file",
            where=Where(key=missing[0]),
            expected="present",
            level=Severity.ERROR,
            repair=Reconvert(hint="no metadata tool can add a list"),
            also=tuple(missing[1:]),
        )
    ]

from __future__ import annotations

import pytest

from gguf_audit.policies import Budget, Policy
from gguf_audit.policies.quantizations import bits_of
from gguf_audit.rule import Hit, NoEvidence, Outcome, Severity
from gguf_audit.testing import TensorSpec
from gguf_audit.where import Where
from gguf_audit_rules.run.quantization_too_low import check
from rule_subjects import LLAMA, SETTINGS, model, policed

EMBEDDING = TensorSpec("token_embd.weight", (256, 64), "F32")
NORM = TensorSpec("blk.0.attn_norm.weight", (256,), "F32")


def matrix(name: str, type_: str | int) -> TensorSpec:
    return TensorSpec(f"blk.{name}.weight", (256, 64), type_)


def said(least: str | None, *matrices: TensorSpec) -> list[Outcome]:
    bits = None if least is None else bits_of(least)
    policy = Policy(budget=Budget(quantization=least, least_bits=bits))
    return list(check(model(LLAMA, [EMBEDDING, NORM, *matrices]), policed(policy)))


def test_fires_where_layers_are_narrower() -> None:
    layers = [matrix("0.attn_q", "Q4_K"), matrix("1.attn_q", "Q3_K")]
    assert said("Q4_K_M", *layers) == [
        Hit(
            message="needs 4.5 bits per weight in its layers as Q4_K_M has, has 3.96",
            where=Where(),
            expected="4.5 bits per weight",
            actual="3.96 bits per weight",
            level=Severity.ERROR,
        )
    ]


@pytest.mark.parametrize(
    ("least", "types"),
    [
        ("Q4_K_M", ("Q4_K", "Q6_K", "Q4_K")),
        ("Q4_K_M", ("Q4_0", "Q4_0", "Q4_0")),
        ("Q4_K_S", ("Q3_K", "Q6_K", "Q5_K")),
        # What llama-quantize itself makes of these has narrower layers too.
        ("IQ3_XXS", ("IQ2_S", "IQ3_XXS", "IQ3_S")),
        ("IQ2_M", ("IQ2_S", "IQ2_S", "IQ3_S")),
        ("Q8_0", ("BF16", "Q8_0", "F32")),
    ],
)
def test_silent_where_layers_are_as_wide(least: str, types: tuple[str, ...]) -> None:
    layers = [matrix(f"{index}.ffn_up", type_) for index, type_ in enumerate(types)]
    assert said(least, *layers) == []


def test_silent_without_layers_or_limit() -> None:
    assert said("Q4_K_M") == []
    assert said(None, matrix("0.attn_q", "Q2_K")) == []
    assert list(check(model(LLAMA, [matrix("0.attn_q", "Q2_K")]), SETTINGS)) == []


def test_a_type_that_nobody_knows_is_not_wide_enough() -> None:
    known, unknown = matrix("0.attn_q", "Q8_0"), matrix("1.attn_q", 9999)
    assert said("Q4_K_M", known, unknown) == [
        NoEvidence("bits per weight of blk.1.attn_q.weight, a type 9999, aren't known", "limit")
    ]

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.testing import TensorSpec
from gguf_audit.where import Where
from gguf_audit_rules.pkg.file_type_misleads import check
from rule_subjects import LLAMA, SETTINGS, model

EMBEDDING = TensorSpec("token_embd.weight", (256, 8), "Q4_K")
NORM = TensorSpec("blk.0.attn_norm.weight", (256,), "F32")


def said(file_type: str | None, *types: str, row: int = 256, name: str = "x.gguf") -> list[Outcome]:
    layers = [
        TensorSpec(f"blk.{index}.ffn_up.weight", (row, 4), each) for index, each in enumerate(types)
    ]
    subject = model(LLAMA, [EMBEDDING, NORM, *layers])
    named = replace(subject.gguf, name=name)
    return list(check(replace(subject, gguf=named, file_type=file_type), SETTINGS))


def test_fires_where_no_layer_has_the_type() -> None:
    assert said("Q4_K_M", "Q8_0", "F16", "Q8_0") == [
        Hit(
            message=("needs layers of Q4_K_M as general.file_type says (Q4_K_M), most are Q8_0"),
            where=Where(key="general.file_type"),
            expected="Q4_K_M",
            actual="Q8_0",
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize(
    ("file_type", "type_"), [("F16", "Q8_0"), ("IQ3_M", "IQ2_S"), ("Q8_0", "Q4_0")]
)
def test_fires_for_other_types(file_type: str, type_: str) -> None:
    assert len(said(file_type, type_, type_)) == 1


@pytest.mark.parametrize(
    ("file_type", "types"),
    [
        ("Q4_K_M", ("Q6_K", "Q4_K")),
        ("Q2_K_S", ("Q2_K",)),
        ("Q4_0", ("Q4_0",)),
        ("IQ3_XS", ("IQ3_XXS",)),
        ("IQ2_S", ("IQ2_XS", "IQ3_S")),
        ("MXFP4_MOE", ("Q8_0", "MXFP4")),
        # a dtype that the machine lacked, or experts as they were published
        ("BF16", ("F16",)),
        ("F16", ("F32",)),
        ("F16", ("MXFP4", "BF16")),
        ("guessed", ("Q8_0",)),
        (None, ("Q8_0",)),
        ("Q4_K_M", ()),
    ],
)
def test_silent_about_mixes(file_type: str | None, types: tuple[str, ...]) -> None:
    assert said(file_type, *types) == []


def test_silent_about_rows_that_its_types_cant_hold() -> None:
    assert said("Q4_K_M", "Q5_0", "Q8_0", row=640) == []
    assert len(said("F16", "Q8_0", row=640)) == 1


@pytest.mark.parametrize(("file_type", "type_"), [("Q4_K_M", "F16"), ("IQ4_XS", "F32")])
def test_fires_where_nothing_is_quantized_of_what_could_be(file_type: str, type_: str) -> None:
    assert said(file_type, type_, type_, row=640) == [
        Hit(
            message=(
                f"needs layers of {file_type} as general.file_type says ({file_type}), most are"
                f" {type_}"
            ),
            where=Where(key="general.file_type"),
            expected=file_type,
            actual=type_,
            level=Severity.INFO,
        )
    ]


def test_silent_where_no_type_holds_most_rows() -> None:
    assert said("Q4_K_M", "F16", "F16", row=650) == []
    # A router stays as it was, whatever the rest is.
    router = TensorSpec("blk.0.ffn_gate_inp.weight", (64, 2), "F32")
    wide = TensorSpec("blk.0.ffn_up.weight", (650, 4), "F16")
    subject = replace(model(LLAMA, [EMBEDDING, router, wide]), file_type="Q4_K_M")
    assert list(check(subject, SETTINGS)) == []


def test_silent_about_dynamic_quants() -> None:
    assert said("Q4_K_M", "Q3_K", name="x-UD-Q4_K_XL.gguf") == []

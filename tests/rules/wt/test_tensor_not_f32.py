from __future__ import annotations

import pytest

from gguf_audit.evidence import Model
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.testing import TensorSpec
from gguf_audit.where import Where
from gguf_audit_rules.wt.tensor_not_f32 import SMALL, check
from rule_subjects import LLAMA, SETTINGS, info_offset, model
from wt_subjects import SPECS, llama, without_tensors


def typed(**types: str) -> Model:
    """Return a model some of whose tensors, named by how they end, have another type."""
    names = {name.replace("__", "."): type_ for name, type_ in types.items()}
    ends = tuple(names)
    return model(
        LLAMA,
        [
            (name, shape, next(names[end] for end in ends if name.endswith(end)))
            if name.endswith(ends)
            else (name, shape, type_)
            for name, shape, type_ in SPECS
        ],
    )


def found(subject: Model) -> list[Outcome]:
    return list(check(subject, SETTINGS))


def test_fires_for_norms_in_half_precision() -> None:
    subject = typed(_norm__weight="F16")
    first = "output_norm.weight"
    [hit] = found(subject)
    assert isinstance(hit, Hit)
    names = [name for name, _, _ in SPECS if name.endswith("_norm.weight")]
    assert hit.also == tuple(names)
    assert names[0] == first
    assert (hit.where, hit.expected, hit.actual) == (
        Where(tensor=first, offset=info_offset(subject, first)),
        "F32",
        "F16",
    )
    assert hit.message == (
        f"needs {first} in F32, it is F16, as are {len(names) - 1} more small tensors: "
        "llama.cpp loads the file and dies at the first token"
    )


def test_fires_for_a_single_bias() -> None:
    name = "blk.2.attn_q.bias"
    subject = llama((name, (64,), "BF16"))
    assert found(subject) == [
        Hit(
            message=f"needs {name} in F32, it is BF16: llama.cpp loads the file and dies at the "
            "first token",
            where=Where(tensor=name, layer=2, offset=info_offset(subject, name)),
            expected="F32",
            actual="BF16",
            level=Severity.ERROR,
            repair=Reconvert(hint="these tensors are F32 in every quantization"),
            also=(name,),
        )
    ]


def test_silent_about_matrices_of_any_type() -> None:
    assert found(llama()) == []
    assert found(typed(attn_q__weight="F16", ffn_down__weight="Q4_0")) == []


def test_silent_about_what_llama_cpp_has_no_place_for() -> None:
    assert found(llama(("blk.2.odd_norm.weight", (64,), "F16"))) == []


@pytest.mark.parametrize("type_", [4, 9999])
def test_silent_about_what_llama_cpp_cannot_read_at_all(type_: int) -> None:
    specs = [
        TensorSpec(name, shape, type_ if name == "output_norm.weight" else own)
        for name, shape, own in SPECS
    ]
    assert found(model(LLAMA, specs)) == []


def test_silent_without_tensors() -> None:
    assert found(without_tensors()) == []


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("output_norm.weight", True),
        ("blk.0.attn_sinks.weight", True),
        ("blk.0.ssm_a", True),
        ("blk.0.ssm_conv1d.weight", True),
        ("blk.0.time_mix_lerp_fused.weight", True),
        ("rope_factors_long.weight", True),
        ("blk.0.ssm_alpha.weight", False),
        ("blk.0.time_mix_decay_w1.weight", False),
        ("token_embd.weight", False),
        ("blk.0.ffn_gate_inp.weight", False),
    ],
)
def test_which_tensors_are_small(name: str, small: bool) -> None:
    assert (SMALL.fullmatch(name) is not None) is small

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.subject import Json
from gguf_audit.where import Where
from gguf_audit_rules.ctx.rope_tensors_changed import FACTORS, FREQUENCIES, check
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, checkpoint, conversion, gguf, info_offset, model

LLAMA3: dict[str, Json] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
}
PLAIN: dict[str, Json] = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
PHI: dict[str, Json] = {
    "architectures": ["Phi3ForCausalLM"],
    "model_type": "phi3",
    "rope_scaling": {"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]},
}


def said(
    config: Mapping[str, Json], *tensors: str, architecture: str = "llama", empty: bool = False
) -> list[object]:
    keys = {key.replace("llama", architecture): value for key, value in LLAMA.items()}
    names = () if empty else ("token_embd.weight", *tensors)
    subject = model(keys, [(name, (8,), "F32") for name in names])
    reference = replace(checkpoint(), config=config)
    return list(check(conversion(subject, keys, reference=reference), SETTINGS))


@pytest.mark.parametrize(
    ("config", "tensors"), [(PLAIN, ()), (LLAMA3, (FREQUENCIES,)), ({"architectures": ["X"]}, ())]
)
def test_silent(config: dict[str, Json], tensors: tuple[str, ...]) -> None:
    assert said(config, *tensors) == []


def test_silent_where_nothing_can_be_compared() -> None:
    assert said(LLAMA3, empty=True) == []
    assert list(check(conversion(LLAMA, LLAMA), SETTINGS)) == []
    assert list(check(conversion(LLAMA, UNKNOWN), SETTINGS)) == []


def test_silent_for_long_factors() -> None:
    assert said(PHI, *FACTORS, architecture="phi3") == []


def test_fires_for_a_lost_tensor() -> None:
    assert said(LLAMA3) == [
        Hit(
            message="needs rope_freqs.weight for llama3 RoPE scaling, absent: llama.cpp rotates "
            "unscaled and says nothing",
            where=Where(tensor=FREQUENCIES),
            expected=[FREQUENCIES],
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(hint="made before the converter wrote them, or cut"),
            also=(FREQUENCIES,),
        )
    ]


def test_fires_for_the_second_of_two() -> None:
    [hit] = said(PHI, FACTORS[0], architecture="phi3")
    assert isinstance(hit, Hit)
    assert (hit.where.tensor, hit.actual) == (FACTORS[1], [FACTORS[0]])


def test_warns_of_a_tensor_that_the_reference_hasnt() -> None:
    subject = model(LLAMA, [(FREQUENCIES, (8,), "F32")])
    assert said(PLAIN, FREQUENCIES) == [
        Hit(
            message="needs no RoPE tensor, this file has rope_freqs.weight: positions are rotated "
            "otherwise than in the reference",
            where=Where(
                tensor=FREQUENCIES,
                offset=info_offset(
                    model(LLAMA, [("token_embd.weight", (8,), "F32"), (FREQUENCIES, (8,), "F32")]),
                    FREQUENCIES,
                ),
            ),
            expected=[],
            actual=[FREQUENCIES],
            level=Severity.WARNING,
            repair=Reconvert(hint="or name the right reference"),
        )
    ]
    assert subject.gguf.tensors


def test_another_gguf_is_a_reference_too() -> None:
    other = gguf(LLAMA, [(FREQUENCIES, (8,), "F32")])
    reference = replace(checkpoint(), gguf=other)
    subject = model(LLAMA, [("token_embd.weight", (8,), "F32")])
    [hit] = check(conversion(subject, LLAMA, reference=reference), SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.where.tensor == FREQUENCIES
    same = model(LLAMA, [(FREQUENCIES, (8,), "F32")])
    assert list(check(conversion(same, LLAMA, reference=reference), SETTINGS)) == []
    bare = replace(checkpoint(), gguf=gguf(LLAMA))
    assert list(check(conversion(same, LLAMA, reference=bare), SETTINGS)) == []

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from gguf_audit.checkpoint import Json
from gguf_audit.formats.gguf import read_gguf
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, NoEvidence, Reconvert, Severity
from gguf_audit.sources import MemorySource
from gguf_audit.testing import TensorSpec, build_gguf
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


def packed(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def valued(
    config: Mapping[str, Json], tensors: Mapping[str, bytes | None], *, type_: str = "F32"
) -> tuple[Gguf, list[object]]:
    """Return a file whose tensors hold these values, and what is said of it."""
    architecture = "phi3" if config["model_type"] == "phi3" else "llama"
    keys = {key.replace("llama", architecture): value for key, value in LLAMA.items()}
    specs = [TensorSpec(name, (2,), type_, data=data) for name, data in tensors.items()]
    named = {"general.architecture": architecture, **keys}
    content = build_gguf(named, specs, data="zeros" if any(tensors.values()) else "none")
    file = read_gguf(MemorySource("model.gguf", content))
    subject = replace(model(keys), gguf=file)
    reference = replace(checkpoint(), config=config)
    return file, list(check(conversion(subject, keys, reference=reference), SETTINGS))


#: Of two pairs of elements the second one turns so slowly that it is stretched in part.
STATED: dict[str, Json] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}
LONG_PHI: dict[str, Json] = {
    "architectures": ["Phi3ForCausalLM"],
    "model_type": "phi3",
    "rope_scaling": {"type": "longrope", "long_factor": [1.0, 4.0], "short_factor": [1.0, 1.5]},
}


def test_silent_for_the_right_values() -> None:
    smooth = (8192 / (2 * math.pi * math.sqrt(500000)) - 1) / 3
    right = packed(1.0, 1 / ((1 - smooth) / 8 + smooth))
    assert valued(STATED, {FREQUENCIES: right})[1] == []
    factors = {FACTORS[0]: packed(1.0, 4.0), FACTORS[1]: packed(1.0, 1.5)}
    assert valued(LONG_PHI, factors)[1] == []


def test_fires_for_values_that_scale_nothing() -> None:
    file, [hit] = valued(STATED, {FREQUENCIES: packed(1.0, 1.0)})
    smooth = (8192 / (2 * math.pi * math.sqrt(500000)) - 1) / 3
    right = 1 / ((1 - smooth) / 8 + smooth)
    assert isinstance(hit, Hit)
    assert hit == Hit(
        message=f"needs {right:.10g} as factor 1 of {FREQUENCIES}, it is 1; 1 of 2 differ: "
        "positions are rotated otherwise than in the reference",
        where=Where(tensor=FREQUENCIES, offset=file.tensors[FREQUENCIES].info_offset),
        expected=hit.expected,
        actual=1.0,
        level=Severity.ERROR,
        repair=Reconvert(),
    )
    assert hit.expected == pytest.approx(right)


def test_long_factors_in_the_place_of_short_ones_are_one_finding() -> None:
    swapped = {FACTORS[0]: packed(1.0, 1.5), FACTORS[1]: packed(1.0, 4.0)}
    _, [hit] = valued(LONG_PHI, swapped)
    assert isinstance(hit, Hit)
    assert (hit.expected, hit.actual, len(hit.consequences)) == (4.0, 1.5, 1)


def test_no_number_is_no_factor() -> None:
    _, [hit] = valued(STATED, {FREQUENCIES: packed(math.nan, 2.0)})
    assert isinstance(hit, Hit)
    assert hit.expected == 1.0


def test_a_reference_that_is_a_file() -> None:
    right, _ = valued(LONG_PHI, {FREQUENCIES: packed(1.0, 2.0)})
    wrong, _ = valued(LONG_PHI, {FREQUENCIES: packed(1.0, 3.0)})
    reference = replace(checkpoint(), gguf=right)
    both = conversion(replace(model(LLAMA), gguf=wrong), LLAMA, reference=reference)
    [hit] = check(both, SETTINGS)
    assert isinstance(hit, Hit)
    assert (hit.expected, hit.actual) == (2.0, 3.0)


def test_a_header_without_data_is_said() -> None:
    assert valued(STATED, {FREQUENCIES: None})[1] == [
        NoEvidence(f"model.gguf has no data for {FREQUENCIES}")
    ]


def test_another_type_is_said() -> None:
    halves = {FREQUENCIES: struct.pack("<2e", 1.0, 2.0)}
    assert valued(STATED, halves, type_="F16")[1] == [
        NoEvidence(f"{FREQUENCIES} is stored as F16, only F32 is read")
    ]


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

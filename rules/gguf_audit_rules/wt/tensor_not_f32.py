"""A small tensor has a type that llama.cpp can't compute with.

## What it does
Looks at the tensors that are multiplied or added number by number: norms, biases,
attention sinks, factors of RoPE, and what recurrent layers decay, shift and convolve with.
All of them have to be F32, in every quantization.

## Why it matters
The file loads. The first token ends in an assertion (`unsupported types`), on the CPU and on
every GPU: only matrices may have another type. Tools that turn all tensors into F16 do this.

## Fix
Reconvert or quantize again with llama.cpp's own tools, which keep these tensors in F32.

## Authority
llama.cpp b11434, `ggml/src/ggml-cpu/binary-ops.cpp: binary_op`, `ggml/src/ggml-cpu/ops.cpp:
ggml_compute_forward_ssm_conv_f32`, `ggml/src/ggml.c: ggml_rope_impl, ggml_add_id,
ggml_soft_max_add_sinks`; `conversion/base.py: prepare_tensors` for what is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import Tensor, TensorType
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import NAMED, listed, places

SMALL = re.compile(
    r".*_norm\.weight|.*\.bias|rope_(?:freqs|factors_long|factors_short)\.weight"
    r"|.*\.(?:attn_sinks|ssm_conv1d|time_mix_lerp_[a-z]+|time_mix_decay)\.weight"
    r"|.*\.ssm_[ad]"
)


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all small tensors of another type than F32."""
    del settings
    inventory = places(model)
    if isinstance(inventory, Absent):
        return  # tensor-missing has said why
    wrong: list[Tensor] = [
        tensor
        for name, tensor in model.gguf.tensors.items()
        if tensor.type.name != "F32" and _readable(tensor.type)
        if name in inventory.slots and SMALL.fullmatch(name)
    ]
    if not wrong:
        return
    first, others = wrong[0], len(wrong) - 1
    more = f", as are {others} more small tensors" if others else ""
    yield Hit(
        message=f"needs {first.name} in F32, it is {first.type.name}{more}: llama.cpp loads the "
        "file and dies at the first token",
        where=Where(
            tensor=first.name,
            layer=inventory.slots[first.name].layer,
            offset=first.info_offset,
        ),
        expected="F32",
        actual=first.type.name,
        level=Severity.ERROR,
        repair=Reconvert(hint="these tensors are F32 in every quantization"),
        consequences=(f"the others: {listed(each.name for each in wrong[1:])}",) if others else (),
        also=tuple(each.name for each in wrong[:NAMED]),
    )


def _readable(type_: TensorType) -> bool:
    """Tell whether llama.cpp knows a type; of others tensor-type speaks."""
    return type_.block_elements is not None and type_.needs is None


RULE = Rule(
    id="WT007",
    name="tensor-not-f32",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("GGUF004", "WT003"),
    authority="llama.cpp b11434 ggml/src/ggml-cpu/binary-ops.cpp binary_op",
)

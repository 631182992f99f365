"""A small Llama with all its tensors, and the checkpoint that it was made from."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gguf_audit.checkpoint import Checkpoint, Json, StoredTensor
from gguf_audit.evidence import Conversion, Model
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.testing import FieldValue
from llama_tensors import Spec, llama_tensors
from rule_subjects import LLAMA, checkpoint, conversion, model

__all__ = ["SPECS", "changed", "converted", "llama", "stored", "without_tensors"]

#: Three blocks; a wrong tensor goes into the last one.
SPECS = llama_tensors(blocks=3, embedding=64, queries=64, keys=32, feed_forward=128, vocabulary=8)
#: What the converter reads from the checkpoint, besides what every file says.
EXPECTED: Mapping[str, int | float | str | bool] = {**LLAMA}
#: GGUF name in a block -> name in a checkpoint.
HF = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def llama(
    *more: Spec, keys: Mapping[str, FieldValue] = LLAMA, lacking: tuple[str, ...] = ()
) -> Model:
    """Return a model with more or fewer tensors than it should have."""
    return model(dict(keys), [spec for spec in (*SPECS, *more) if spec[0] not in lacking])


def changed(name: str, *shape: int) -> Model:
    """Return a model with one tensor of another shape."""
    return model(LLAMA, [(n, shape if n == name else s, t) for n, s, t in SPECS])


def without_tensors() -> Model:
    """Return what is left of a model without its tensors."""
    return model(LLAMA)


def stored(**more: tuple[int, ...]) -> dict[str, StoredTensor]:
    """Return the tensors of the checkpoint; ``__`` in a name stands for a dot."""
    found: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (8, 64),
        "model.norm.weight": (64,),
    }
    for name, shape, _ in SPECS:
        block, _, rest = name.removeprefix("blk.").partition(".")
        if name.startswith("blk."):
            hf = HF[rest.removesuffix(".weight")]
            found[f"model.layers.{block}.{hf}.weight"] = tuple(reversed(shape))
    found |= {name.replace("__", "."): shape for name, shape in more.items()}
    return {name: StoredTensor(dtype="BF16", shape=shape) for name, shape in found.items()}


def converted(
    actual: Model,
    tensors: Mapping[str, StoredTensor] | Absent,
    *,
    gguf: Gguf | None = None,
    config: Mapping[str, Json] | None = None,
) -> Conversion:
    """Return a model beside a checkpoint of these tensors."""
    reference: Checkpoint = replace(
        checkpoint(), load_tensors=lambda: tensors, config=config or {}, gguf=gguf
    )
    return conversion(actual, EXPECTED, reference=reference)

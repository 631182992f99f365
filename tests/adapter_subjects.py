"""A small LoRA adapter, an importance matrix and a control vector, and what they go with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from companion_subjects import Tensors, file
from gguf_audit.checkpoint import Json
from gguf_audit.gguf import Gguf, ValueType
from gguf_audit.testing import FieldValue

ADAPTER: Mapping[str, FieldValue] = {
    "general.architecture": "llama",
    "general.type": "adapter",
    "adapter.type": "lora",
    "adapter.lora.alpha": 16.0,
}
#: Rank 8, on the queries of three blocks and one output of a feed-forward part.
PAIRS: Tensors = {
    **{f"blk.{index}.attn_q.weight.lora_a": (64, 8) for index in range(3)},
    **{f"blk.{index}.attn_q.weight.lora_b": (8, 64) for index in range(3)},
    "blk.2.ffn_down.weight.lora_a": (128, 8),
    "blk.2.ffn_down.weight.lora_b": (8, 64),
}
PEFT: Mapping[str, Json] = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "bias": "none"}
#: The same pairs as the peft library names them.
PEFT_TENSORS: Tensors = {
    **{
        f"base_model.model.model.layers.{index}.self_attn.q_proj.lora_A.weight": (8, 64)
        for index in range(3)
    },
    **{
        f"base_model.model.model.layers.{index}.self_attn.q_proj.lora_B.weight": (64, 8)
        for index in range(3)
    },
    "base_model.model.model.layers.2.mlp.down_proj.lora_A.weight": (8, 128),
    "base_model.model.model.layers.2.mlp.down_proj.lora_B.weight": (64, 8),
}
MATRIX: Mapping[str, FieldValue] = {
    "general.type": "imatrix",
    "imatrix.datasets": (ValueType.STRING, ["calibration.txt"]),
    "imatrix.chunk_count": 4,
    "imatrix.chunk_size": 64,
}
ENTRIES: Tensors = {
    "blk.0.attn_q.weight.in_sum2": (64,),
    "blk.0.attn_q.weight.counts": (1,),
    "blk.0.attn_q.weight.in_sum": (64,),
    "blk.0.attn_q.weight.stats": (12,),
    "blk.2.ffn_down.weight.in_sum2": (128,),
    "blk.2.ffn_down.weight.counts": (1,),
}
VECTOR: Mapping[str, FieldValue] = {
    "general.architecture": "controlvector",
    "controlvector.model_hint": "llama",
    "controlvector.layer_count": (ValueType.INT32, 2),
}
DIRECTIONS: Tensors = {"direction.1": (64,), "direction.2": (64,)}


def adapter(
    *,
    lost: Sequence[str] = (),
    changed: Mapping[str, FieldValue] | None = None,
    shapes: Tensors | None = None,
) -> Gguf:
    """Return the small adapter, without some keys and tensors, with others changed."""
    return file(ADAPTER, PAIRS, lost=lost, changed=changed, shapes=shapes)


def matrix(
    *,
    lost: Sequence[str] = (),
    changed: Mapping[str, FieldValue] | None = None,
    shapes: Tensors | None = None,
) -> Gguf:
    """Return the importance matrix, without some keys and tensors, with others changed."""
    return file(MATRIX, ENTRIES, lost=lost, changed=changed, shapes=shapes)


def vector(
    *,
    lost: Sequence[str] = (),
    changed: Mapping[str, FieldValue] | None = None,
    shapes: Tensors | None = None,
) -> Gguf:
    """Return the control vector, without some tensors, with others changed."""
    return file(VECTOR, DIRECTIONS, lost=lost, changed=changed, shapes=shapes)

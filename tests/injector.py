"""Puts one fault at a time into a GGUF file: a key lost, changed or of another type.

    for fault in FAULTS:
        made = inject(open_gguf(right), fault)
        if made is not None:
            write_gguf(broken, *made)

Tensor data is left out, but for what scales RoPE: a hole stands in for it, of the right size.
"""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from gguf_audit.gguf import Array, Field, Gguf, Scalar, ValueType
from gguf_audit.parts import Absent
from gguf_audit.testing import FieldValue, TensorSpec

__all__ = ["FAULTS", "Fault", "Keys", "TensorFault", "copied", "inject"]

BLOCK = "blk.0."
Keys = dict[str, FieldValue]


class _Unchanged(enum.Enum):
    """What a change returns that can't be made to a value."""

    UNCHANGED = enum.auto()


UNCHANGED = _Unchanged.UNCHANGED
#: Returns the other value, ``None`` for a key to be lost.
Change = Callable[[Field], FieldValue | _Unchanged | None]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to do to one key, named without the architecture in front."""

    verb: str
    key: str
    change: Change

    @property
    def name(self) -> str:
        """What a test or a table calls it."""
        return f"{self.verb} {self.key}"


@dataclass(frozen=True, slots=True)
class TensorFault:
    """One thing to do to the last tensor of the first block."""

    verb: str
    #: Returns the tensor as it is to be, ``None`` for one to be lost.
    change: Callable[[TensorSpec], TensorSpec | None]

    @property
    def name(self) -> str:
        """What a test or a table calls it."""
        return f"{self.verb} a tensor"


def inject(gguf: Gguf, fault: Fault | TensorFault) -> tuple[Keys, list[TensorSpec]] | None:
    """Return keys and tensors of a file with the fault, ``None`` where it can't have it."""
    keys, tensors = copied(gguf)
    if isinstance(fault, TensorFault):
        chosen = [index for index, each in enumerate(tensors) if str(each.name).startswith(BLOCK)]
        if not chosen:
            return None
        other = fault.change(tensors[chosen[-1]])
        tensors[chosen[-1] : chosen[-1] + 1] = [] if other is None else [other]
        return keys, tensors
    key = f"{gguf.architecture}.{fault.key}"
    field = gguf.fields.get(key)
    changed = UNCHANGED if field is None else fault.change(field)
    if isinstance(changed, _Unchanged):
        return None
    if changed is None:
        del keys[key]
    else:
        keys[key] = changed
    return keys, tensors


def copied(gguf: Gguf) -> tuple[Keys, list[TensorSpec]]:
    """Return the keys and tensors of a file, to be written again."""
    keys: Keys = {name: _typed(field) for name, field in gguf.fields.items()}
    return keys, [
        TensorSpec(each.name, each.shape, each.type, data=_data(gguf, each.name))
        for each in gguf.tensors.values()
    ]


def _data(gguf: Gguf, name: str) -> bytes | None:
    """Return the data of a tensor of RoPE factors, which an audit looks at."""
    values = gguf.values(name) if name.startswith("rope_f") else Absent("nobody looks")
    return None if isinstance(values, Absent) else struct.pack(f"<{len(values)}f", *values)


def _typed(field: Field) -> FieldValue:
    if isinstance(field.value, Array):
        return (field.value.item_type, list(field.value.items()))
    assert isinstance(field.value, Scalar)
    return (_type(field), field.value)


def _type(field: Field) -> ValueType:
    assert field.type is not None
    return field.type


def _lose(field: Field) -> FieldValue | _Unchanged | None:
    del field
    return None


def _double(field: Field) -> FieldValue | _Unchanged | None:
    """Double a count, and every item of an array of counts."""
    value = field.value
    if isinstance(value, Array):
        items = list(value.items())
        if not any(items) or not all(type(item) is int for item in items):
            return UNCHANGED
        return (value.item_type, [2 * item for item in items if isinstance(item, int)])
    if not isinstance(value, int | float) or isinstance(value, bool) or not value:
        return UNCHANGED
    return (_type(field), 2 * value)


def _halve(field: Field) -> FieldValue | _Unchanged | None:
    value = field.value
    if type(value) is not int or value < 2 or value % 2:
        return UNCHANGED
    return (_type(field), value // 2)


def _raise(field: Field) -> FieldValue | _Unchanged | None:
    value = field.value
    return (_type(field), value + 1) if type(value) is int else UNCHANGED


def _retype(field: Field) -> FieldValue | _Unchanged | None:
    """Give a scalar the type that tools guess: signed, or an integer for a float."""
    match field.value:
        case bool():
            return (ValueType.UINT32, int(field.value))
        case int():
            return (ValueType.INT32, field.value) if field.value < 1 << 31 else UNCHANGED
        case float():
            return (ValueType.INT32, int(field.value))
        case str():
            return (ValueType.UINT32, 1)
        case _:
            return UNCHANGED


def _flip(field: Field) -> FieldValue | _Unchanged | None:
    return (_type(field), not field.value) if isinstance(field.value, bool) else UNCHANGED


def _garble(field: Field) -> FieldValue | _Unchanged | None:
    return (_type(field), "spaceship") if isinstance(field.value, str) else UNCHANGED


def _unmake(field: Field) -> FieldValue | _Unchanged | None:
    return (_type(field), math.nan) if isinstance(field.value, float) else UNCHANGED


def _lengthen(field: Field) -> FieldValue | _Unchanged | None:
    if not isinstance(field.value, Array):
        return UNCHANGED
    items = list(field.value.items())
    return (field.value.item_type, items + items[:1])


COUNTS = (
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.sliding_window",
    "attention.kv_lora_rank",
    "attention.key_length_mla",
    "attention.value_length_mla",
    "expert_count",
    "expert_used_count",
    "expert_feed_forward_length",
    "nextn_predict_layers",
    "leading_dense_block_count",
    "rope.dimension_count",
    "rope.scaling.original_context_length",
    "ssm.conv_kernel",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.group_count",
    "ssm.time_step_rank",
    "full_attention_interval",
    "shortconv.l_cache",
    "wkv.head_size",
)
NUMBERS = (
    "attention.layer_norm_rms_epsilon",
    "attention.layer_norm_epsilon",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scaling.factor",
    "rope.scaling.attn_factor",
    "rope.scaling.yarn_beta_fast",
    "expert_weights_scale",
    "logit_scale",
    "residual_scale",
    "embedding_scale",
    "attn_logit_softcapping",
    "final_logit_softcapping",
)
ENUMERATED = ("expert_gating_func", "pooling_type")
FLAGS = ("attention.causal", "expert_weights_norm", "use_parallel_residual")
TEXTS = ("rope.scaling.type",)
ARRAYS = (
    "attention.head_count_kv",
    "attention.sliding_window_pattern",
    "attention.recurrent_layers",
    "feed_forward_length",
    "rope.dimension_sections",
)


def _drop(tensor: TensorSpec) -> TensorSpec | None:
    del tensor
    return None


def _rename(tensor: TensorSpec) -> TensorSpec:
    return replace(tensor, name=f"{tensor.name!s}.old")


def _widen(tensor: TensorSpec) -> TensorSpec:
    return replace(tensor, shape=(2 * tensor.shape[0], *tensor.shape[1:]))


FAULTS: tuple[Fault | TensorFault, ...] = (
    TensorFault("drop", _drop),
    TensorFault("rename", _rename),
    TensorFault("widen", _widen),
    *(Fault("lose", key, _lose) for key in (*COUNTS, *NUMBERS, *ENUMERATED, *FLAGS, *TEXTS)),
    *(Fault("lose", key, _lose) for key in ARRAYS if key not in COUNTS),
    *(Fault("double", key, _double) for key in (*COUNTS, *NUMBERS)),
    *(Fault("halve", key, _halve) for key in COUNTS),
    *(Fault("raise", key, _raise) for key in ENUMERATED),
    *(Fault("flip", key, _flip) for key in FLAGS),
    *(Fault("garble", key, _garble) for key in TEXTS),
    *(Fault("retype", key, _retype) for key in (*COUNTS, *NUMBERS, *ENUMERATED, *FLAGS, *TEXTS)),
    *(Fault("unmake", key, _unmake) for key in NUMBERS),
    *(Fault("lengthen", key, _lengthen) for key in ARRAYS),
)

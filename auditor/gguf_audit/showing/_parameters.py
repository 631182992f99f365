"""Hyper-parameters as llama.cpp takes them, by groups, keys first and then defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gguf_audit import arch
from gguf_audit.chat import TEMPLATE
from gguf_audit.errors import AuditError
from gguf_audit.fields import Fields, Origin
from gguf_audit.gguf import Array, Field, ValueType
from gguf_audit.layout import CacheLayout, Chunked, Latent, Sliding
from gguf_audit.overview import Entry, Group

__all__ = ["GROUPS", "entry_of", "group_name", "grouped", "parameters", "runtime_defaults"]

#: Groups in their order.
GROUPS = (
    "model",
    "attention",
    "RoPE and context",
    "experts",
    "state",
    "tokenizer",
    "template",
    "file",
    "other",
)
#: Entries of one group that are shown; real files have fewer than 100 keys in all.
MOST = 100
#: Items of an array that are read: one per block at most (``LLAMA_MAX_LAYERS``).
ITEMS = 512

#: How a hyper-parameter's name begins -> its group; the rest is the model's.
_BEGINNINGS: Mapping[str, str] = {
    "attention.": "attention",
    "attn_": "attention",
    "rope.": "RoPE and context",
    "context_length": "RoPE and context",
    "expert": "experts",
    "moe_": "experts",
    "leading_dense_block_count": "experts",
    "interleave_moe_layer_step": "experts",
    "router_": "experts",
    "ssm.": "state",
    "wkv.": "state",
    "kda.": "state",
    "shortconv.": "state",
    "full_attention_interval": "state",
    "token_shift_count": "state",
    "time_mix_": "state",
    "time_decay_": "state",
    "rescale_every_n_layers": "state",
}
#: How a full key begins -> its group, the longer beginning first.
_GENERAL: Mapping[str, str] = {
    TEMPLATE: "template",
    "tokenizer.": "tokenizer",
    "general.file_type": "file",
    "general.quantization_version": "file",
    "general.alignment": "file",
    "general.quantized_by": "file",
    "quantize.": "file",
    "split.": "file",
    "general.": "model",
    "xielu.": "model",
}
#: Absent keys whose default matters to every model with attention.
_ATTENTION = ("attention.head_count_kv", "attention.key_length", "attention.value_length")
_EXPERTS = (
    "expert_used_count",
    "expert_shared_count",
    "expert_weights_norm",
    "expert_gating_func",
)
_SCALING = (
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.attn_factor",
)


def group_name(key: str, architecture: str) -> str:
    """Return the group of a full metadata key."""
    prefix = f"{architecture}."
    if architecture and key.startswith(prefix):
        name = key.removeprefix(prefix)
        found = (group for begin, group in _BEGINNINGS.items() if name.startswith(begin))
        return next(found, "model")
    found = (group for begin, group in _GENERAL.items() if key.startswith(begin))
    return next(found, "other")


def grouped(entries: Iterable[tuple[str, Entry]]) -> tuple[Group, ...]:
    """Put (group, entry) pairs together, each group bounded, in the order of groups."""
    found: dict[str, list[Entry]] = {name: [] for name in GROUPS}
    for name, entry in entries:
        found[name].append(entry)
    return tuple(
        Group(name=name, entries=tuple(members[:MOST]), omitted=max(0, len(members) - MOST))
        for name, members in found.items()
        if members
    )


def entry_of(field: Field, *, note: str = "") -> Entry:
    """Return a key as it is stored; of a long array, or one of strings, only its size."""
    if not isinstance(field.value, Array):
        return Entry(name=field.key, value=field.value, origin="key", note=note)
    array = field.value
    size = f"{array.count:,} {array.item_type.name.lower()} items"
    if array.count > ITEMS or array.item_type is ValueType.ARRAY:
        return Entry(name=field.key, value=array, origin="key", note=note or size)
    try:
        return Entry(name=field.key, value=tuple(array.items()), origin="key", note=note)
    except AuditError as error:
        return Entry(name=field.key, value=array, origin="key", note=f"{size}: {error.message}")


def parameters(
    fields: Fields, layout: CacheLayout | None, *, with_defaults: bool = True
) -> Iterator[tuple[str, Entry]]:
    """Yield (group, entry) for the keys under the architecture's name, then for defaults."""
    windowed = layout is not None and _windowed(layout)
    prefix = f"{fields.architecture}."
    for field in fields:
        if not field.key.startswith(prefix):
            continue
        note = _note(fields, field, layout, windowed=windowed)
        yield group_name(field.key, fields.architecture), entry_of(field, note=note)
    if with_defaults:
        yield from runtime_defaults(fields, windowed=windowed)


def runtime_defaults(fields: Fields, *, windowed: bool) -> Iterator[tuple[str, Entry]]:
    """Yield (group, entry) for what llama.cpp takes where a key that matters is absent."""
    known = arch.by_name(fields.architecture)
    if known is None:
        return
    for name in _worth_telling(fields, known.defaults, windowed=windowed):
        if name in fields:
            continue
        value = arch.effective(fields, name)
        if value is None or value.origin is Origin.KEY:
            continue
        entry = Entry(name=value.key, value=value.value, origin="runtime default")
        yield group_name(value.key, fields.architecture), entry


def _worth_telling(
    fields: Fields, defaults: Mapping[str, object], *, windowed: bool
) -> Iterator[str]:
    """Yield the names of keys whose default says something about this model."""
    attends = _positive(fields, "attention.head_count")
    rotates = any(field.key.startswith(fields.key("rope.")) for field in fields)
    if attends:
        yield from _ATTENTION
    if attends and rotates:
        yield "rope.dimension_count"
        yield "rope.freq_base"
    if any(name in fields for name in _SCALING):
        yield from _SCALING
    if _positive(fields, "expert_count"):
        yield from _EXPERTS
    for name in defaults:
        if name.startswith("expert_"):
            continue
        if windowed or name not in ("rope.freq_base_swa", "attention.sliding_window"):
            yield name
    if windowed and rotates and "rope.freq_base_swa" not in defaults:
        yield "rope.freq_base_swa"


def _positive(fields: Fields, name: str) -> bool:
    found = fields.find(name)
    if found is None:
        return False
    if isinstance(found.value, int | float):
        return found.value > 0
    return not isinstance(found.value, str)


def _windowed(layout: CacheLayout) -> bool:
    return any(
        isinstance(store, Sliding | Chunked)
        or (isinstance(store, Latent) and store.window_tokens is not None)
        for _, store in layout.stores()
    )


def _note(fields: Fields, field: Field, layout: CacheLayout | None, *, windowed: bool) -> str:
    """Say where llama.cpp makes nothing of a key, and what else is as right."""
    name = field.key.removeprefix(f"{fields.architecture}.")
    if name == "attention.sliding_window" and layout is not None and not windowed:
        return "no layer that llama.cpp makes has a window"
    others = fields.alternatives(name)
    if not others:
        return ""
    said = ("no such key" if other is None else str(other) for other in others)
    return f"or {' or '.join(said)}, by the release of transformers"

"""How much memory llama.cpp reserves for a model's caches, to the byte.

llama.cpp build 11434: ``llama_context`` and ``llama_init_from_model``
(src/llama-context.cpp) for the number of cells and for refusals, src/llama-kv-cache.cpp,
src/llama-kv-cache-iswa.cpp and src/llama-memory-recurrent.cpp for rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, assert_never

from msgspec import Struct

from gguf_audit.arch import LlamaModel, Trait, llama_model
from gguf_audit.errors import Refused
from gguf_audit.fields import Fields
from gguf_audit.layout import (
    AttentionStore,
    Chunked,
    Compressed,
    Full,
    Indexer,
    Latent,
    Recurrent,
    Sliding,
    Store,
)

__all__ = [
    "ELEMENT_TYPES",
    "Cache",
    "ElementType",
    "FlashAttention",
    "Plan",
    "full_attention_bytes",
    "plan",
]

FlashAttention = Literal["auto", "on", "off"]

#: Cells of every cache are padded to this.
PADDING = 256
#: ``LLAMA_MAX_SEQ`` (src/llama-cparams.h).
MAX_SEQUENCES = 256
#: States and what makes compressed rows are kept in f32, whatever the cache type.
STATE_BYTES = 4


class ElementType(Struct, frozen=True, kw_only=True):
    """A cache type: how many elements make a block of how many bytes."""

    name: str
    block_elements: int
    block_bytes: int

    def row_bytes(self, elements: int) -> int:
        """Return the bytes of one row."""
        return elements * self.block_bytes // self.block_elements

    @property
    def quantized(self) -> bool:
        """Several elements share a block."""
        return self.block_elements > 1


#: The types that ``-ctk`` and ``-ctv`` take (``kv_cache_types`` in common/arg.cpp).
ELEMENT_TYPES: Mapping[str, ElementType] = {
    name: ElementType(name=name, block_elements=elements, block_bytes=size)
    for name, elements, size in (
        ("f32", 1, 4),
        ("f16", 1, 2),
        ("bf16", 1, 2),
        ("q8_0", 32, 34),
        ("q5_1", 32, 24),
        ("q5_0", 32, 22),
        ("q4_1", 32, 20),
        ("q4_0", 32, 18),
        ("iq4_nl", 32, 18),
    )
}


class Cache(Struct, frozen=True, kw_only=True):
    """One of the caches that llama.cpp makes for a context."""

    label: str
    #: Layers that have a row of their own in it.
    layers: int
    #: Cells of one stream; for states, rows.
    cells: int
    streams: int = 1
    key_bytes: int
    value_bytes: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of keys and values together."""
        return self.key_bytes + self.value_bytes


class Plan(Struct, frozen=True, kw_only=True):
    """What llama.cpp reserves for one context."""

    #: Settings by the names of ``plan``, ``context`` as it was resolved.
    settings: Mapping[str, int | str | bool]
    caches: tuple[Cache, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes of all caches."""
        return sum(cache.bytes for cache in self.caches)


class _Context(Struct, frozen=True, kw_only=True):
    """A context as llama.cpp resolves it out of the user's settings."""

    #: Cells of one stream of a cache that keeps every token.
    cells: int
    streams: int
    sequences: int
    ubatch: int
    unified: bool
    swa_full: bool
    flash: bool
    key_type: ElementType
    value_type: ElementType


def plan(
    subject: Fields | LlamaModel,
    *,
    context: int,
    parallel: int = 1,
    batch: int = 2048,
    ubatch: int = 512,
    cache_type_k: str = "f16",
    cache_type_v: str = "f16",
    swa_full: bool = False,
    kv_unified: bool = False,
    flash_attn: FlashAttention = "auto",
) -> Plan:
    """Return what llama.cpp reserves for a model's caches.

    ``context`` in tokens over all sequences, 0 for the model's training context. Raises
    Refused where llama.cpp refuses or aborts, on the metadata or on the settings.
    """
    model = subject if isinstance(subject, LlamaModel) else llama_model(subject)
    resolved = _resolve(
        model,
        context=context,
        parallel=parallel,
        batch=batch,
        ubatch=ubatch,
        types=(_element_type(cache_type_k), _element_type(cache_type_v)),
        swa_full=swa_full,
        kv_unified=kv_unified,
        flash_attn=flash_attn,
    )
    settings: dict[str, int | str | bool] = {
        "context": context or model.context_length,
        "parallel": parallel,
        "batch": batch,
        "ubatch": ubatch,
        "cache_type_k": cache_type_k,
        "cache_type_v": cache_type_v,
        "swa_full": swa_full,
        "kv_unified": kv_unified,
        "flash_attn": flash_attn,
    }
    caches = () if Trait.NO_CACHE in model.traits else _caches(model, resolved)
    return Plan(settings=settings, caches=caches)


def full_attention_bytes(subject: Fields | LlamaModel, tokens: int) -> int:
    """Return the f16 bytes of every attention layer keeping every token.

    Heads are unpacked (a latent becomes the keys and values it stands for) and windows
    ignored; states, which no attention would replace, are left out.
    """
    model = subject if isinstance(subject, LlamaModel) else llama_model(subject)
    row = sum(heads.kv_heads * (heads.key_length + heads.value_length) for heads in model.unpacked)
    return 2 * row * tokens


def _element_type(name: str) -> ElementType:
    found = ELEMENT_TYPES.get(name)
    if found is None:
        raise Refused(f"{name!r} is no type for a cache; one of {', '.join(ELEMENT_TYPES)} is")
    return found


def _resolve(
    model: LlamaModel,
    *,
    context: int,
    parallel: int,
    batch: int,
    ubatch: int,
    types: tuple[ElementType, ElementType],
    swa_full: bool,
    kv_unified: bool,
    flash_attn: FlashAttention,
) -> _Context:
    if Trait.BORROWED in model.traits:
        raise Refused("a draft model that reads another model's cache")
    asked = context or model.context_length
    sequences = max(1, parallel)
    if min(context, parallel, batch, ubatch) < 0:
        raise Refused("context, parallel, batch and ubatch can't be negative")
    if batch == 0 and ubatch == 0:
        raise Refused("batch and ubatch can't both be 0")
    if asked == 0:
        raise Refused("context and the model's context_length can't both be 0")
    flash = flash_attn != "off" and Trait.NO_FLASH not in model.traits
    _check_types(model, *types, flash=flash)
    if sequences > MAX_SEQUENCES:
        raise Refused(f"{sequences} sequences, llama.cpp takes at most {MAX_SEQUENCES}")
    batch = min(asked, batch) if model.causal else batch
    ubatch = min(batch, ubatch or batch)
    unified = kv_unified and Trait.OWN_STREAMS not in model.traits
    cells = _pad(asked)
    if not kv_unified:
        cells = _pad(cells // sequences)
    _check_graph(model, sequences=sequences, ubatch=ubatch, unified=unified, flash=flash)
    return _Context(
        cells=cells,
        streams=1 if unified else sequences,
        sequences=sequences,
        ubatch=ubatch,
        unified=unified,
        swa_full=swa_full,
        flash=flash,
        key_type=types[0],
        value_type=types[1],
    )


def _check_types(
    model: LlamaModel, key_type: ElementType, value_type: ElementType, *, flash: bool
) -> None:
    if Trait.ONE_TYPE in model.traits and key_type != value_type:
        raise Refused(
            f"keys are {key_type.name} and values {value_type.name}: this model's must be alike"
        )
    if value_type.quantized and not flash:
        raise Refused(f"{value_type.name} values need flash attention")
    if not flash:
        return
    for key_length, value_length in model.head_lengths:
        for kind, type_, length in (
            ("key", key_type, key_length),
            ("value", value_type, value_length),
        ):
            if length % type_.block_elements:
                raise Refused(
                    f"a head's {kind} has {length} elements, no whole number of {type_.name} blocks"
                )


def _check_graph(
    model: LlamaModel, *, sequences: int, ubatch: int, unified: bool, flash: bool
) -> None:
    if Trait.EVEN_BATCHES in model.traits and not unified and ubatch % sequences:
        raise Refused(
            f"a micro batch of {ubatch} tokens is no multiple of {sequences} streams",
            kind="aborts",
        )
    if Trait.ONE_STREAM in model.traits and sequences > 1 and not unified:
        raise Refused("more than one sequence needs a unified cache here", kind="aborts")
    if Trait.UNPICKED in model.traits and flash and (sequences == 1 or not unified):
        raise Refused("the indexer has another number of heads than the keys", kind="aborts")


def _pad(cells: int) -> int:
    return -(-cells // PADDING) * PADDING


#: One cache: its label and its cells.
_Group = tuple[str, int]


def _caches(model: LlamaModel, context: _Context) -> tuple[Cache, ...]:
    stores = list(model.layout.stores())
    kinds = {type(store) for _, store in stores}
    windowed = any(_window(store) is not None for _, store in stores)
    main = "main" if Indexer in kinds else "non-SWA" if windowed else "kv"
    groups: dict[_Group, list[Store]] = {}
    for _, store in stores:
        groups.setdefault(_group(store, main, context), []).append(store)
    hollow = len(model.hollow)
    caches: list[Cache] = []
    for (label, cells), members in groups.items():
        first = members[0]
        if isinstance(first, Recurrent):
            caches.append(_state(label, members, context))
            continue
        attention = [store for store in members if not isinstance(store, Recurrent)]
        extra = hollow if isinstance(first, Full) else 0
        caches.append(_attention(label, cells, attention, context, model, hollow=extra))
    return tuple(sorted(caches, key=lambda cache: cache.label != main))


def _window(store: Store) -> int | None:
    match store:
        case Sliding() | Chunked() | Latent():
            return store.window_tokens
        case Full() | Indexer() | Compressed() | Recurrent():
            return None
        case _:
            assert_never(store)


def _group(store: Store, main: str, context: _Context) -> _Group:
    match store:
        case Full() | Latent(window_tokens=None):
            return main, context.cells
        case Sliding() | Chunked() | Latent():
            return "SWA", _window_cells(_window(store) or 0, context)
        case Indexer():
            return "indexer", _compressed_cells(store.tokens_per_cell, context)
        case Compressed():
            per_cell = store.tokens_per_cell
            return f"compressed 1/{per_cell}", _compressed_cells(per_cell, context)
        case Recurrent():
            return "recurrent", context.sequences
        case _:
            assert_never(store)


def _compressed_cells(tokens_per_cell: int, context: _Context) -> int:
    if tokens_per_cell == 1:
        return context.cells
    return _pad(-(-context.cells // tokens_per_cell))


def _window_cells(tokens: int, context: _Context) -> int:
    if context.swa_full:
        return context.cells
    windows = tokens * (context.sequences if context.unified else 1)
    return _pad(min(context.cells, windows + context.ubatch))


def _attention(
    label: str,
    cells: int,
    stores: list[AttentionStore],
    context: _Context,
    model: LlamaModel,
    *,
    hollow: int,
) -> Cache:
    rows = cells * context.streams
    keys = sum(context.key_type.row_bytes(store.kv_heads * store.key_length) for store in stores)
    return Cache(
        label=label,
        layers=len(stores) + hollow,
        cells=cells,
        streams=context.streams,
        key_bytes=keys * rows,
        value_bytes=_values(stores, context, model, hollow=hollow) * rows,
    )


def _values(
    stores: Iterable[AttentionStore], context: _Context, model: LlamaModel, *, hollow: int
) -> int:
    """Return the bytes of one row of values over all layers."""
    widths = [
        store.kv_heads * store.value_length
        if context.flash or isinstance(store, Indexer | Compressed | Latent)
        else model.widest_value
        for store in stores
    ]
    if not context.flash:
        widths += [model.widest_value] * hollow
    return sum(context.value_type.row_bytes(width) for width in widths)


def _state(label: str, stores: list[Store], context: _Context) -> Cache:
    elements = sum(store.elements for store in stores if isinstance(store, Recurrent))
    return Cache(
        label=label,
        layers=len(stores),
        cells=context.sequences,
        key_bytes=STATE_BYTES * elements * context.sequences,
    )

"""What an architecture itself needs, read out of a ``config.json``.

From the papers and the modelling code of transformers; nothing here knows what a
runtime can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gguf_audit.arch._config import Config, malformed
from gguf_audit.layout import (
    CacheLayout,
    Chunked,
    Full,
    Layer,
    Recurrent,
    Sliding,
    StatePart,
    Store,
)

__all__ = ["chunked", "full", "heads", "layer_types", "layout", "periodic", "sliding", "windowed"]


def heads(config: Config) -> Full:
    """Return the attention heads of one layer with grouped queries."""
    queries = config.need("num_attention_heads", "n_head", "n_heads")
    kv_heads = config.integer("num_key_value_heads", "n_kv_heads")
    length = config.integer("head_dim")
    if length is None:
        if queries == 0:
            raise malformed("num_attention_heads", 0, "a number of heads")
        length = config.need("hidden_size", "n_embd", "dim") // queries
    return Full(
        kv_heads=queries if kv_heads is None else kv_heads, key_length=length, value_length=length
    )


def full(config: Config) -> CacheLayout:
    """Return a layout whose every layer keeps every token."""
    store = heads(config)
    return layout(store for _ in range(config.blocks()))


def layout(stores: Iterable[Store | Sequence[Store]]) -> CacheLayout:
    """Return a layout out of each layer's stores, in order."""
    layers: list[Layer] = []
    for index, kept in enumerate(stores):
        several = tuple(kept) if isinstance(kept, Sequence) else (kept,)
        layers.append(Layer(index=index, stores=several))
    return CacheLayout(layers=tuple(layers))


def state(*, conv: int = 0, ssm: int = 0) -> Recurrent:
    """Return a state: what convolutions remember, in 16 bits, and the rest, in 32."""
    parts = (
        StatePart(name="conv", elements=conv, type="bf16"),
        StatePart(name="ssm", elements=ssm, type="f32"),
    )
    return Recurrent(parts=tuple(part for part in parts if part.elements))


def sliding(store: Full, tokens: int) -> Sliding:
    """Return the same heads behind a window."""
    return Sliding(
        kv_heads=store.kv_heads,
        key_length=store.key_length,
        value_length=store.value_length,
        window_tokens=tokens,
    )


def chunked(store: Full, tokens: int) -> Chunked:
    """Return the same heads in chunks."""
    return Chunked(
        kv_heads=store.kv_heads,
        key_length=store.key_length,
        value_length=store.value_length,
        window_tokens=tokens,
    )


def periodic(period: int, blocks: int) -> tuple[str, ...]:
    """Return layer types whose every ``period``-th layer is full."""
    return tuple(
        "full_attention" if period and (index + 1) % period == 0 else "sliding_attention"
        for index in range(blocks)
    )


def layer_types(config: Config, otherwise: Callable[[int], Sequence[str]]) -> tuple[str, ...]:
    """Return one layer type per block: the config's own, else what ``otherwise`` says."""
    blocks = config.blocks()
    types = config.strings("layer_types")
    if types is None:
        return tuple(otherwise(blocks))
    if len(types) < blocks:
        raise malformed("layer_types", list(types)[:8], f"an array of {blocks} items")
    return types[:blocks]


def windowed(config: Config, types: Sequence[str], tokens: int | None) -> CacheLayout:
    """Return full and window layers; a window of 0 or null is none."""
    store = heads(config)
    if not tokens:
        return layout(store for _ in types)
    return layout(
        sliding(store, tokens) if kind == "sliding_attention" else store for kind in types
    )

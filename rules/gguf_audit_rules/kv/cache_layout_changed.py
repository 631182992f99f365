"""The cache differs from a right conversion's in a way that no other rule names.

## What it does
Compares the remaining parts of each layer's cache: shared layers, indexer keys, compressed
rows, and the kind of attention where neither a window, a latent nor a state explains it.

## Why it matters
Whatever llama.cpp keeps differently from a right conversion, it also reads differently.

## Fix
Reconvert with a current converter.

## Authority
llama.cpp b11434, `src/llama-model.cpp: create_memory`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.layout import Chunked, Compressed, Indexer, Latent, Layer, Sliding, Store
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import Pair, attention, cost, differing_keys, named, pairs, state

#: Keys of side caches and of layers that share one.
KEYS = (
    "attention.indexer.head_count",
    "attention.indexer.key_length",
    "attention.indexer.kpool",
    "attention.indexer.types",
    "attention.compress_ratios",
    "attention.shared_kv_layers",
    "attention.sliding_window_pattern",
    "leading_dense_block_count",
    "attention.head_count_kv",
    "kda.head_dim",
)


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all layers that differ otherwise."""
    del settings
    compared = list(pairs(conversion))
    differing = [
        pair.index
        for pair in compared
        if _rest(pair.implied) != _rest(pair.expected) or _other_kind(pair)
    ]
    if not differing:
        return
    first = next(pair for pair in compared if pair.index == differing[0])
    yield Hit(
        message=(
            f"needs {_said(first.expected)} on {named(differing, len(compared))}, this file "
            f"makes it {_said(first.implied)}{cost(conversion)}"
        ),
        where=Where(layer=first.index),
        expected=_said(first.expected),
        actual=_said(first.implied),
        level=Severity.ERROR,
        repair=Reconvert(),
        also=differing_keys(conversion, KEYS),
    )


def _rest(layer: Layer) -> object:
    """Return what no other rule compares: sharing and side caches."""
    side = tuple(store for store in layer.stores if isinstance(store, Indexer | Compressed))
    return layer.shares_with, side


def _other_kind(pair: Pair) -> bool:
    """Tell whether attention is of a kind that no window, latent or state explains."""
    ours, theirs = attention(pair.implied), attention(pair.expected)
    match ours, theirs:
        case (None, None):
            return False
        case (None, _) | (_, None):
            # Beside an unchanged state; else it is state-changed's cause.
            return state(pair.implied) == state(pair.expected)
        case (Latent(), Latent()):
            return False
        case (Latent(), _) | (Sliding(), Chunked()) | (Chunked(), Sliding()):
            return True
        case _:
            return False


def _said(layer: Layer) -> str:
    if layer.shares_with is not None:
        return f"the cache of layer {layer.shares_with}"
    return " + ".join(map(_kind, layer.stores)) or "no cache"


def _kind(store: Store) -> str:
    kind = type(store).__name__.lower()
    if not isinstance(store, Indexer | Compressed):
        return kind
    cells = "" if store.tokens_per_cell == 1 else f" for {store.tokens_per_cell} tokens"
    return f"{kind} of {store.kv_heads} x {store.key_length}{cells}"


RULE = Rule(
    id="KV108",
    name="cache-layout-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    defers_to=("KV102", "KV103", "KV104", "KV105", "KV106"),
    authority="llama.cpp b11434 src/llama-model.cpp create_memory",
)

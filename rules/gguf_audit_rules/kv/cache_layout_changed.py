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
from gguf_audit.layout import Compressed, Indexer, Layer
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import attention, cost, named, pairs, state


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all layers that differ otherwise."""
    del settings
    compared = list(pairs(conversion))
    differing = [pair.index for pair in compared if _rest(pair.implied) != _rest(pair.expected)]
    if not differing:
        return
    first = next(pair for pair in compared if pair.index == differing[0])
    yield Hit(
        message=(
            f"needs {_said(first.expected)} on {named(differing, len(compared))}, this file "
            f"makes it {_said(first.implied)}: {cost(conversion)}"
        ),
        where=Where(layer=first.index),
        expected=_said(first.expected),
        actual=_said(first.implied),
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _rest(layer: Layer) -> object:
    """Return what no other rule compares: sharing, side caches, and having attention at all."""
    side = tuple(store for store in layer.stores if isinstance(store, Indexer | Compressed))
    has_attention = attention(layer) is not None or state(layer) is not None
    return layer.shares_with, side, has_attention


def _said(layer: Layer) -> str:
    if layer.shares_with is not None:
        return f"the cache of layer {layer.shares_with}"
    kinds = [type(store).__name__.lower() for store in layer.stores]
    return " + ".join(kinds) or "no cache"


RULE = Rule(
    id="KV108",
    name="cache-layout-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    defers_to=("KV102", "KV103", "KV104", "KV105", "KV106"),
    authority="llama.cpp b11434 src/llama-model.cpp create_memory",
)

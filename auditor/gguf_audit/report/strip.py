"""A layout as one line: a letter for each layer, what repeats folded.

Gemma 3 270M:       SSSSSF x3
DeepSeek-V2-Lite:   L x27
Gemma 3n:           SSSSF x4 ssssf x3      small letters read another layer's cache
Falcon-H1:          [FR] x44               a layer with attention and a state
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from gguf_audit.layout import (
    CacheLayout,
    Chunked,
    Compressed,
    Full,
    Indexer,
    Latent,
    Layer,
    Recurrent,
    Sliding,
    Store,
)

__all__ = ["letters", "strip", "strip_legend"]

#: Layers of one repeated unit at most; real patterns have up to 8.
LONGEST_UNIT = 16
#: Letter -> what it stands for; the small letter is a layer that reads another's.
KINDS: Mapping[str, str] = {
    "F": "full",
    "S": "sliding",
    "C": "chunked",
    "L": "latent",
    "I": "indexer",
    "P": "compressed",
    "R": "recurrent",
}
NOTHING = "-"


def letters(layout: CacheLayout) -> tuple[str, ...]:
    """Return one sign per layer: a letter, several in brackets, or ``-`` for nothing."""
    by_index = {layer.index: layer for layer in layout.layers}
    return tuple(_sign(layer, by_index) for layer in layout.layers)


def _sign(layer: Layer, by_index: Mapping[int, Layer]) -> str:
    own = "".join(dict.fromkeys(_letter(store) for store in layer.stores))
    if layer.shares_with is not None:
        source = by_index.get(layer.shares_with)
        shared = dict.fromkeys(_letter(store).lower() for store in source.stores) if source else {}
        own += "".join(shared) or "?"
    if not own:
        return NOTHING
    return own if len(own) == 1 else f"[{own}]"


def _letter(store: Store) -> str:
    match store:
        case Full():
            return "F"
        case Sliding():
            return "S"
        case Chunked():
            return "C"
        case Latent():
            return "L"
        case Indexer():
            return "I"
        case Compressed():
            return "P"
        case Recurrent():
            return "R"
        case _:
            assert_never(store)


def strip(layout: CacheLayout) -> str:
    """Return the layers from first to last, repeated units written once: ``SSSSSF x3``."""
    return " ".join(_parts(letters(layout)))


def _parts(signs: Sequence[str]) -> Iterator[str]:
    """Yield units with their count, and what doesn't repeat in between."""
    single: list[str] = []
    start = 0
    while start < len(signs):
        length, times = _unit(signs, start)
        if times == 1:
            single.append(signs[start])
            start += 1
            continue
        if single:
            yield "".join(single)
            single = []
        yield f"{''.join(signs[start : start + length])} x{times}"
        start += length * times
    if single:
        yield "".join(single)


def _unit(signs: Sequence[str], start: int) -> tuple[int, int]:
    """Return (length, times) of the repetition at ``start`` that covers most layers."""
    best = (1, 1)
    for length in range(1, min(LONGEST_UNIT, (len(signs) - start) // 2) + 1):
        end = start + length
        while end < len(signs) and signs[end] == signs[end - length]:
            end += 1
        times = (end - start) // length
        # "FF" is shorter than "F x2".
        if times > 1 and length * times >= 4 and length * times > best[0] * best[1]:
            best = (length, times)
    return best


def strip_legend(layout: CacheLayout) -> Iterator[str]:
    """Yield what each letter stands for, by layers that keep the same."""
    counts: dict[str, int] = {}
    for layer in layout.layers:
        for store in layer.stores:
            told = f"{_letter(store)}  {_told(store)}"
            counts[told] = counts.get(told, 0) + 1
    for told, count in counts.items():
        layers = "layer " if count == 1 else "layers"
        letter, _, what = told.partition("  ")
        yield f"{letter}  {count:>3,} {layers}  {what}"
    readers = sum(layer.shares_with is not None for layer in layout.layers)
    if readers:
        layers = "layer reads" if readers == 1 else "layers read"
        yield f"a  {readers:>3,} {layers} the cache of another layer: small letters"
    hollow = sum(not layer.stores and layer.shares_with is None for layer in layout.layers)
    if hollow:
        layers = "layer  keeps" if hollow == 1 else "layers keep"
        yield f"{NOTHING}  {hollow:>3,} {layers} nothing"


def _told(store: Store) -> str:
    match store:
        case Full():
            return f"full: {_heads(store)}"
        case Sliding():
            return f"sliding: {_heads(store)}, window {store.window_tokens:,} tokens"
        case Chunked():
            return f"chunked: {_heads(store)}, chunks of {store.window_tokens:,} tokens"
        case Latent(window_tokens=None):
            return f"latent: {_heads(store)}"
        case Latent():
            return f"latent: {_heads(store)}, window {store.window_tokens:,} tokens"
        case Indexer():
            return f"indexer: {_heads(store)}{_per_cell(store.tokens_per_cell)}"
        case Compressed():
            return f"compressed: {_heads(store)}{_per_cell(store.tokens_per_cell)}"
        case Recurrent():
            parts = ", ".join(f"{part.name} {part.elements:,}" for part in store.parts)
            return f"recurrent: a state of {store.elements:,} elements ({parts})"
        case _:
            assert_never(store)


def _heads(store: Full | Sliding | Chunked | Latent | Indexer | Compressed) -> str:
    heads = "1 head" if store.kv_heads == 1 else f"{store.kv_heads:,} heads"
    if store.value_length == 0:
        return f"{heads} of {store.key_length:,}"
    return f"{heads} of {store.key_length:,} + {store.value_length:,}"


def _per_cell(tokens: int) -> str:
    return "" if tokens == 1 else f", one row for {tokens:,} tokens"

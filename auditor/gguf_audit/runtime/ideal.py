"""What an architecture needs, were a runtime to waste nothing.

A window keeps exactly its tokens, no cell is padded; keys and values are 16 bits wide,
states 32 as every runtime computes them.
"""

from __future__ import annotations

from typing import assert_never

from gguf_audit.layout import (
    AttentionStore,
    CacheLayout,
    Chunked,
    Compressed,
    Full,
    Indexer,
    Latent,
    Recurrent,
    Sliding,
)

__all__ = ["ideal_bytes"]

ELEMENT_BYTES = 2
STATE_BYTES = 4


def ideal_bytes(layout: CacheLayout, tokens: int) -> int:
    """Return the bytes that a layout needs for one sequence of ``tokens``."""
    total = 0
    for _, store in layout.stores():
        if isinstance(store, Recurrent):
            total += STATE_BYTES * store.elements
        else:
            row = store.kv_heads * (store.key_length + store.value_length)
            total += ELEMENT_BYTES * row * _rows(store, tokens)
    return total


def _rows(store: AttentionStore, tokens: int) -> int:
    match store:
        case Sliding() | Chunked():
            return min(tokens, store.window_tokens)
        case Latent():
            return tokens if store.window_tokens is None else min(tokens, store.window_tokens)
        case Full():
            return tokens
        case Indexer() | Compressed():
            return -(-tokens // store.tokens_per_cell)
        case _:
            assert_never(store)

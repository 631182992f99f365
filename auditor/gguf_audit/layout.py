"""What a model keeps per token and per sequence while it generates.

A layout says which *stores* each layer keeps; how many bytes that makes depends on
the runtime and its settings and is computed in ``runtime``. Several stores in one
layer are real: Falcon-H1 has attention and a state, DeepSeek-V3.2 a latent and an
indexer.

    Gemma 3, period 6, window 512:      S S S S S F  S S S S S F ...
    DeepSeek-V2-Lite, MLA kept:         L L L L L L  ... (27 times)
    Qwen3.5, full_attention_interval 4: R R R F  R R R F ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct

__all__ = [
    "AttentionStore",
    "CacheLayout",
    "Chunked",
    "Compressed",
    "Full",
    "Indexer",
    "Latent",
    "Layer",
    "Recurrent",
    "Sliding",
    "StatePart",
    "Store",
    "store_to_dict",
]


class Full(Struct, frozen=True, kw_only=True):
    """Keys and values of every token."""

    kv_heads: int
    #: Elements of one head's key and value.
    key_length: int
    value_length: int


class Sliding(Struct, frozen=True, kw_only=True):
    """Keys and values of the last ``window_tokens`` tokens."""

    kv_heads: int
    key_length: int
    value_length: int
    window_tokens: int


class Chunked(Struct, frozen=True, kw_only=True):
    """Keys and values of the current chunk of ``window_tokens`` tokens (Llama 4)."""

    kv_heads: int
    key_length: int
    value_length: int
    window_tokens: int


class Latent(Struct, frozen=True, kw_only=True):
    """One compressed row per token instead of keys and values (MLA).

    ``key_length`` is ``kv_lora_rank`` + rope dimension, ``value_length`` is 0:
    the value is read out of the key row. A window makes it a windowed latent.
    """

    kv_heads: int
    key_length: int
    value_length: int = 0
    window_tokens: int | None = None


class Indexer(Struct, frozen=True, kw_only=True):
    """Small keys by which sparse attention picks the tokens it reads."""

    kv_heads: int
    key_length: int
    value_length: int = 0
    #: More than 1 where it picks among compressed rows (DeepSeek-V4).
    tokens_per_cell: int = 1


class Compressed(Struct, frozen=True, kw_only=True):
    """One row for every ``tokens_per_cell`` tokens (DeepSeek-V4)."""

    kv_heads: int
    key_length: int
    value_length: int = 0
    tokens_per_cell: int


class StatePart(Struct, frozen=True, kw_only=True):
    """One named tensor of a recurrent state."""

    #: ``conv``, ``ssm``, ``shift``, ...
    name: str
    elements: int
    #: Element type the model itself asks for; llama.cpp always keeps f32.
    type: str = "f32"


class Recurrent(Struct, frozen=True, kw_only=True):
    """A state of fixed size per sequence, whatever its length."""

    parts: tuple[StatePart, ...]

    @property
    def elements(self) -> int:
        """Elements of all parts together."""
        return sum(part.elements for part in self.parts)


AttentionStore = Full | Sliding | Chunked | Latent | Indexer | Compressed
Store = AttentionStore | Recurrent


class Layer(Struct, frozen=True, kw_only=True):
    """The stores of one layer, in the order in which the runtime lists them."""

    index: int
    stores: tuple[Store, ...] = ()
    #: Index of the layer whose stores this one reads instead of its own.
    shares_with: int | None = None


class CacheLayout(Struct, frozen=True, kw_only=True):
    """What a model keeps, layer by layer."""

    layers: tuple[Layer, ...]

    def stores(self) -> Iterator[tuple[int, Store]]:
        """Yield (layer index, store) for every store that is kept."""
        for layer in self.layers:
            for store in layer.stores:
                yield layer.index, store

    def to_dict(self) -> dict[str, object]:
        """Return LAYOUT of the JSON report."""
        return {
            "layers": [
                {
                    "index": layer.index,
                    "shares_with": layer.shares_with,
                    "stores": [store_to_dict(store) for store in layer.stores],
                }
                for layer in self.layers
            ]
        }


def store_to_dict(store: Store) -> dict[str, object]:
    """Return one store in the shape of the JSON report."""
    match store:
        case Recurrent():
            parts = [
                {"name": part.name, "elements": part.elements, "type": part.type}
                for part in store.parts
            ]
            return {"kind": "recurrent", "parts": parts}
        case Full():
            return _attention("full", store, None, 1)
        case Sliding():
            return _attention("sliding", store, store.window_tokens, 1)
        case Chunked():
            return _attention("chunked", store, store.window_tokens, 1)
        case Latent():
            return _attention("latent", store, store.window_tokens, 1)
        case Indexer():
            return _attention("indexer", store, None, store.tokens_per_cell)
        case Compressed():
            return _attention("compressed", store, None, store.tokens_per_cell)
        case _:
            assert_never(store)


def _attention(
    kind: str, store: AttentionStore, window_tokens: int | None, tokens_per_cell: int
) -> dict[str, object]:
    return {
        "kind": kind,
        "kv_heads": store.kv_heads,
        "key_length": store.key_length,
        "value_length": store.value_length,
        "window_tokens": window_tokens,
        "tokens_per_cell": tokens_per_cell,
    }

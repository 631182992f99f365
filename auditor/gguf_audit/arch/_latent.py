"""Layers that keep one compressed row per token (MLA), as llama.cpp reads them.

``llama_hparams::is_mla`` (src/llama-hparams.cpp) and the loaders and graphs of
src/models/deepseek2.cpp and its kin, llama.cpp build 11434.
"""

from __future__ import annotations

from collections.abc import Sequence

from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.layout import Full, Indexer, Latent, Layer, Store

__all__ = ["INDEXER", "indexer", "latent", "latents", "packed_lengths", "unpacked"]

#: What every loader with sparse attention reads of its indexer.
INDEXER = (
    "attention.indexer.head_count",
    "attention.indexer.key_length",
    "attention.indexer.top_k",
)


def packed_lengths(hyper: Hyper) -> tuple[int, int] | None:
    """Return the lengths of a head's key and value before packing; ``None`` for no MLA."""
    key_length = hyper.fields.integer("attention.key_length_mla")
    value_length = hyper.fields.integer("attention.value_length_mla")
    if not key_length or not value_length:
        return None
    return key_length, value_length


def latent(hyper: Hyper, index: int) -> Latent:
    """Return the store of a layer with MLA.

    Raises Refused where the row isn't one head of rank + rope: the loader takes such a
    file, and the process ends while the graph is built.
    """
    rank = require(hyper.fields, "attention.kv_lora_rank")
    rope = hyper.fields.integer("rope.dimension_count")
    rope = hyper.key_length if rope is None else rope
    lengths = packed_lengths(hyper)
    if lengths is not None and lengths[0] <= rope:
        message = f"keys of {lengths[0]} elements leave none beside {rope} of RoPE"
        raise refuse(hyper.fields, "rope.dimension_count", message, aborts=True)
    if hyper.key_length != rank + rope:
        message = f"rows of {hyper.key_length} elements for a rank of {rank} and {rope} of RoPE"
        raise refuse(hyper.fields, "attention.key_length", message, aborts=True)
    if hyper.kv_heads[index] != 1:
        message = f"{hyper.kv_heads[index]} key-value heads in a latent, block {index}"
        raise refuse(hyper.fields, "attention.head_count_kv", message, aborts=True)
    return Latent(kv_heads=1, key_length=hyper.key_length)


def unpacked(hyper: Hyper, index: int) -> Full:
    """Return the heads that a layer's latent stands for."""
    key_length, value_length = packed_lengths(hyper) or (hyper.key_length, hyper.value_length)
    return Full(kv_heads=hyper.heads[index], key_length=key_length, value_length=value_length)


def latents(hyper: Hyper, beside: Sequence[Sequence[Store]]) -> LlamaModel:
    """Return a latent per layer with what each layer keeps beside it."""
    layers = [
        Layer(index=index, stores=(latent(hyper, index), *beside[index]))
        for index in range(len(beside))
    ]
    heads = [unpacked(hyper, index) for index in range(len(beside))]
    return hyper.model(layers, traits=(Trait.ONE_TYPE,), unpacked=heads)


def indexer(hyper: Hyper) -> Indexer:
    """Return the keys by which a layer picks the tokens it reads."""
    return Indexer(kv_heads=1, key_length=require(hyper.fields, "attention.indexer.key_length"))

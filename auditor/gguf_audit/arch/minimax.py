"""MiniMax-01, with lightning attention, and MiniMax-M3, with sparse attention.

src/models/minimax-01.cpp, minimax-m3.cpp and src/llama-kv-cache-msa.cpp of llama.cpp
build 11434.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._model import Hyper, LlamaModel, refuse, require
from gguf_audit.arch._states import even_batches, hybrid, intervals, parts
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Indexer, Layer, Store

__all__ = ["ARCHITECTURES"]


def _lightning(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, "residual_scale"))
    needs_heads(hyper)
    state = parts(state=hyper.key_length * hyper.key_length * hyper.heads[0])
    recurrent = intervals(hyper, 8)
    return hybrid(hyper, recurrent, state, traits=even_batches(hyper, recurrent))


def _sparse(hyper: Hyper) -> LlamaModel:
    required = (
        RMS,
        "expert_feed_forward_length",
        "expert_shared_count",
        "expert_gating_func",
        "attention.indexer.head_count",
        "attention.indexer.key_length",
        "attention.indexer.top_k",
        "attention.indexer.block_size",
        "attention.indexer.local_blocks",
    )
    check(hyper, required)
    needs_heads(hyper)
    if require(hyper.fields, "attention.indexer.block_size") == 0:
        name = "attention.indexer.block_size"
        raise refuse(hyper.fields, name, f"{hyper.fields.key(name)} is 0", aborts=True)
    dense = hyper.fields.integer("leading_dense_block_count") or 0
    # one head of values is kept as well, though only keys are read
    indexer = Indexer(
        kv_heads=1,
        key_length=require(hyper.fields, "attention.indexer.key_length"),
        value_length=hyper.value_length,
    )
    layers: list[Layer] = []
    for index in range(hyper.blocks):
        stores: tuple[Store, ...] = (hyper.full(index),)
        layers.append(Layer(index=index, stores=(*stores, indexer) if index >= dense else stores))
    return hyper.model(layers)


ARCHITECTURES = (
    Architecture(names=("minimax-01",), implied=_lightning, saves=frozenset({"state"})),
    Architecture(names=("minimax-m3",), implied=_sparse),
)

"""Qwen4-Exp: gated delta nets, sparse attention with pooled indexer keys, n-gram states.

src/models/qwen4exp.cpp of llama.cpp build 11434 and ``llama_memory_hybrid_idx``
(src/llama-memory-hybrid-idx.cpp).
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._model import Hyper, LlamaModel, refuse, require
from gguf_audit.arch._states import SSM, intervals, parts, selective
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Indexer, Layer, Recurrent

__all__ = ["ARCHITECTURES"]

#: Raw and pooled key stand side by side in a cell.
POOLED_ROWS = 2
MAX_NGRAM = 8


def _implied(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, "rope.dimension_sections"))
    nonzero = (
        *SSM,
        "ssm.group_count",
        "hyper_connection.low_rank",
        "attention.indexer.head_count",
        "attention.indexer.key_length",
        "attention.indexer.top_k",
    )
    for name in nonzero:
        if require(hyper.fields, name) == 0:
            raise refuse(hyper.fields, name, f"{hyper.fields.key(name)} is 0")
    copies = require(hyper.fields, "hyper_connection.count")
    if copies <= 1:
        message = f"{copies} hyper-connections, llama.cpp wants more than one"
        raise refuse(hyper.fields, "hyper_connection.count", message)
    if hyper.fields.integer("full_attention_interval") == 0:
        message = f"{hyper.fields.key('full_attention_interval')} is 0"
        raise refuse(hyper.fields, "full_attention_interval", message)
    needs_heads(hyper)
    recurrent = intervals(hyper, 4)
    length = require(hyper.fields, "attention.indexer.key_length") * _rows(hyper)
    indexer = Indexer(kv_heads=1, key_length=length)
    state = selective(hyper)
    ngrams = _ngram_layers(hyper, recurrent)
    layers: list[Layer] = []
    for index in range(hyper.trunk):
        if not recurrent[index]:
            layers.append(Layer(index=index, stores=(hyper.full(index), indexer)))
            continue
        extra = parts(ngram=ngrams[index]) if index in ngrams else Recurrent(parts=())
        layers.append(Layer(index=index, stores=(Recurrent(parts=(*state.parts, *extra.parts)),)))
    return hyper.model(layers)


def _rows(hyper: Hyper) -> int:
    name = "attention.compress_ratios"
    ratios = set(hyper.fields.per_block(name, hyper.blocks) or ()) - {0}
    if not ratios:
        return 1
    budget = require(hyper.fields, "attention.indexer.top_k")
    ratio = min(ratios)
    if len(ratios) > 1 or ratio == 1 or budget % ratio:
        message = f"compression by {sorted(ratios)[:4]} for a budget of {budget} tokens"
        raise refuse(hyper.fields, name, message)
    return POOLED_ROWS


def _ngram_layers(hyper: Hyper, recurrent: tuple[bool, ...]) -> dict[int, int]:
    """Return the elements of n-gram history by the layer that keeps it: one at most."""
    name = "ple.layers"
    listed = hyper.fields.items(name) or ()
    if not listed:
        return {}
    index = listed[0]
    if len(listed) > 1 or not isinstance(index, int) or not 0 <= index < hyper.blocks:
        raise refuse(hyper.fields, name, f"{hyper.fields.key(name)} isn't one block")
    if not recurrent[index]:
        raise refuse(hyper.fields, name, f"block {index} isn't recurrent")
    length = require(hyper.fields, "ple.ngram_size")
    kernel = require(hyper.fields, "ple.conv_kernel")
    heads = (length - 1) * require(hyper.fields, "ple.heads_per_ngram")
    check(hyper, ("ple.eos_token_id", "embedding_length_per_layer_input"))
    if not 2 <= length <= MAX_NGRAM or heads == 0 or kernel == 0:
        raise refuse(hyper.fields, "ple.ngram_size", f"n-grams of {length} tokens")
    arrays = {
        "ple.layer_multipliers": length,
        "ple.head_offsets": heads,
        "ple.head_vocab_sizes": heads,
    }
    for array, count in arrays.items():
        if len(hyper.fields.items(array) or ()) != count:
            raise refuse(hyper.fields, array, f"{hyper.fields.key(array)} hasn't {count} items")
    copies = require(hyper.fields, "hyper_connection.count")
    return {index: (kernel - 1) * length * copies * hyper.embedding_length}


ARCHITECTURES = (Architecture(names=("qwen4exp",), implied=_implied, saves=frozenset({"state"})),)

"""LFM2: short convolutions with a few layers of attention among them.

src/models/lfm2.cpp and lfm2moe.cpp of llama.cpp build 11434. A window, where there is
one, is on every attention layer.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._model import Hyper, LlamaModel, require
from gguf_audit.arch._states import hybrid, parts, without_kv
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Layer, Sliding

__all__ = ["ARCHITECTURES"]


def _lfm2(hyper: Hyper) -> LlamaModel:
    if hyper.architecture == "lfm2moe":
        check(hyper, ("expert_feed_forward_length", "expert_gating_func"))
    check(hyper, (RMS,))
    cache = require(hyper.fields, "shortconv.l_cache")
    needs_heads(hyper)
    state = parts(conv=hyper.embedding_length * max(cache - 1, 0))
    recurrent = without_kv(hyper)
    tokens = hyper.fields.integer("attention.sliding_window") or 0
    if hyper.architecture == "lfm2moe" or tokens == 0:
        attention = [hyper.full(index) for index in range(hyper.blocks)]
        return hybrid(hyper, recurrent, state, attention=attention)
    layers = [
        Layer(index=index, stores=(state if recurrent[index] else _windowed(hyper, index, tokens),))
        for index in range(hyper.trunk)
    ]
    windows = [not recurrent[index] and index < hyper.trunk for index in range(hyper.blocks)]
    return hyper.model(layers, windowed=windows)


def _windowed(hyper: Hyper, index: int, tokens: int) -> Sliding:
    return Sliding(
        kv_heads=hyper.kv_heads[index],
        key_length=hyper.key_length_swa,
        value_length=hyper.value_length_swa,
        window_tokens=tokens,
    )


ARCHITECTURES = (
    Architecture(names=("lfm2", "lfm2moe"), implied=_lfm2, saves=frozenset({"state"})),
)

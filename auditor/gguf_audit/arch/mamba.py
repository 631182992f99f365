"""Mamba 1 and 2, and hybrids of Mamba and attention.

src/models/mamba.cpp, mamba2.cpp, jamba.cpp, falcon-h1.cpp, granite-hybrid.cpp,
nemotron-h.cpp and plamo2.cpp of llama.cpp build 11434.
"""

from __future__ import annotations

from dataclasses import replace

from gguf_audit.arch._attention import NORM, RMS, check, needs_heads
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._states import SSM, hybrid, selective, without_kv
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Layer

__all__ = ["ARCHITECTURES"]

GROUPS = "ssm.group_count"


def _mamba(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    state = selective(hyper, grouped=hyper.architecture == "mamba2")
    return hyper.model(Layer(index=index, stores=(state,)) for index in range(hyper.trunk))


def _jamba(hyper: Hyper) -> LlamaModel:
    check(hyper, (*SSM, RMS))
    needs_heads(hyper)
    attention = [hyper.full(index) for index in range(hyper.blocks)]
    state = selective(hyper, grouped=False)
    return hybrid(hyper, without_kv(hyper), state, attention=attention)


def _grouped(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, *SSM, GROUPS))
    needs_heads(hyper)
    attention = [hyper.full(index) for index in range(hyper.blocks)]
    return hybrid(hyper, without_kv(hyper), selective(hyper), attention=attention)


def _plamo2(hyper: Hyper) -> LlamaModel:
    # lengths are read again, for layer 0 may have no heads to divide by
    key_length = hyper.fields.integer("attention.key_length")
    value_length = hyper.fields.integer("attention.value_length")
    return _grouped(
        replace(
            hyper,
            key_length=hyper.key_length if key_length is None else key_length,
            value_length=hyper.value_length if value_length is None else value_length,
        )
    )


def _falcon_h1(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, *SSM, GROUPS))
    needs_heads(hyper)
    state = selective(hyper)
    layers = [
        Layer(index=index, stores=(hyper.full(index), state) if index < hyper.trunk else ())
        for index in range(hyper.blocks)
    ]
    return hyper.model(layers[: hyper.trunk])


def _nemotron_h(hyper: Hyper) -> LlamaModel:
    check(hyper, (*SSM, GROUPS, NORM))
    needs_heads(hyper)
    recurrent = tuple(
        index < hyper.trunk and hyper.kv_heads[index] == 0 and hyper.feed_forward[index] == 0
        for index in range(hyper.blocks)
    )
    attention = [
        hyper.full(index) if hyper.feed_forward[index] == 0 else None
        for index in range(hyper.blocks)
    ]
    return hybrid(hyper, recurrent, selective(hyper), attention=attention)


ARCHITECTURES = (
    Architecture(names=("mamba", "mamba2"), implied=_mamba, saves=frozenset({"state"})),
    Architecture(names=("jamba",), implied=_jamba, saves=frozenset({"state"})),
    Architecture(names=("falcon-h1",), implied=_falcon_h1, saves=frozenset({"state"})),
    Architecture(names=("granitehybrid",), implied=_grouped),
    Architecture(names=("plamo2",), implied=_plamo2, saves=frozenset({"state"})),
    Architecture(
        names=("nemotron_h", "nemotron_h_moe"), implied=_nemotron_h, saves=frozenset({"state"})
    ),
)

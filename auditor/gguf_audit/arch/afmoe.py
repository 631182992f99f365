"""Arcee's Trinity (AFMoE): windows on three of four layers, and experts.

src/models/afmoe.cpp of llama.cpp build 11434; conversion/afmoe.py. No pattern is written:
the period is in llama.cpp.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, windowed
from gguf_audit.arch._config import Config
from gguf_audit.arch._model import Hyper, LlamaModel, refuse
from gguf_audit.arch._recipe import Recipe, rope_whole
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
WINDOW = "attention.sliding_window"
PERIOD = 4


def _afmoe(hyper: Hyper) -> LlamaModel:
    if not hyper.fields.integer(WINDOW):
        message = f"{hyper.fields.key(WINDOW)} is absent or 0: the graph can't be built"
        raise refuse(hyper.fields, WINDOW, message, aborts=True)
    window = Window(when_absent=0, zero_is_none=True, period=PERIOD)
    return windowed(window, RMS, EXPERTS, "expert_shared_count")(hyper)


def _ideal_layout(config: Config) -> CacheLayout:
    period = config.integer("global_attn_every_n_layers")
    period = PERIOD if period is None else period
    types = _ideal.layer_types(config, lambda blocks: _ideal.periodic(period, blocks))
    return _ideal.windowed(config, types, config.integer("sliding_window"))


RECIPE = Recipe(
    takes=("AfmoeForCausalLM",),
    writes="afmoe",
    needs={"vocab_size": "vocab_size"},
    copies={
        "expert_shared_count": "num_shared_experts",
        EXPERTS: "moe_intermediate_size",
        "leading_dense_block_count": "num_dense_layers",
        "expert_weights_norm": "route_norm",
        "expert_weights_scale": "route_scale",
        WINDOW: "sliding_window",
    },
    rope=rope_whole,
    ideal=_ideal_layout,
)

ARCHITECTURES = (
    Architecture(
        names=("afmoe",),
        implied=_afmoe,
        converters=(RECIPE.converter(),),
        defaults={"expert_gating_func": 2},
        saves=frozenset({"window"}),
    ),
)

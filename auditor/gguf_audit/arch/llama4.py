"""Llama 4: chunks of 8192 tokens on three of four layers.

src/models/llama4.cpp of llama.cpp build 11434: the chunk is in llama.cpp, and a window
in the file only matters as a 0 that switches chunks off. ``Llama4Model`` in
conversion/llama4.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, windowed
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config
from gguf_audit.arch._recipe import Recipe, rope_whole, sizes
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

#: Llama4TextConfig of transformers 4.57.6.
DEFAULTS: dict[str, Json] = {
    **sizes(202048, 5120, 8192, 48, 40, None, 128, 131072, 1e-5, 500000.0),
    "num_key_value_heads": 8,
    "num_local_experts": 16,
    "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 1,
    "intermediate_size_mlp": 16384,
    "attention_chunk_size": 8192,
}
FULL = "full_attention"


def _more(config: Config, keys: Draft) -> Draft:
    keys["feed_forward_length"] = config.need("intermediate_size_mlp")
    types = config.strings("layer_types")
    if types and all(kind == FULL for kind in types):
        keys["attention.sliding_window"] = 0
    return keys


def _types(blocks: int) -> list[str]:
    return [FULL if (index + 1) % 4 == 0 else "chunked_attention" for index in range(blocks)]


def _chunks(config: Config) -> CacheLayout:
    heads = _ideal.heads(config)
    tokens = config.integer("attention_chunk_size")
    types = _ideal.layer_types(config, _types)
    return _ideal.layout(
        heads if kind == FULL or not tokens else _ideal.chunked(heads, tokens) for kind in types
    )


LLAMA4 = Recipe(
    takes=("Llama4ForCausalLM", "Llama4ForConditionalGeneration"),
    writes="llama4",
    defaults={"llama4_text": DEFAULTS},
    fills_kv_heads=True,
    needs={
        "vocab_size": "vocab_size",
        "interleave_moe_layer_step": "interleave_moe_layer_step",
        "expert_feed_forward_length": "intermediate_size",
    },
    rope=rope_whole,
    more=_more,
    ideal=_chunks,
)

ARCHITECTURES = (
    Architecture(
        names=("llama4",),
        defaults={"attention.sliding_window": 8192},
        implied=windowed(
            Window(when_absent=8192, zero_is_none=True, fixed=8192, period=4, chunked=True),
            RMS,
            "expert_feed_forward_length",
            "interleave_moe_layer_step",
        ),
        converters=(LLAMA4.converter(),),
    ),
)

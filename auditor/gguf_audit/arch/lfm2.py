"""LFM2: short convolutions with a few layers of attention among them.

src/models/lfm2.cpp and lfm2moe.cpp of llama.cpp build 11434; ``LFM2Model`` and
``LFM2MoeModel`` in conversion/lfm2.py. A window, where there is one, is on every
attention layer.
"""

from __future__ import annotations

from collections.abc import Callable

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._base import Draft, base_keys
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import POOLING, Keys
from gguf_audit.arch._model import Hyper, LlamaModel, require
from gguf_audit.arch._recipe import needed, number, sizes
from gguf_audit.arch._states import hybrid, parts, without_kv
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Layer, Sliding

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


#: Lfm2Config of transformers 4.57.6 and Lfm2MoeConfig of 5.24.
LFM2: dict[str, Json] = {
    **sizes(65536, 2560, 12288, 32, 32, 8, None, 128000, 0.0, 1e6),
    "norm_eps": 1e-5,
    "conv_L_cache": 3,
    "block_auto_adjust_ff_dim": True,
    "block_ffn_dim_multiplier": 1.0,
    "block_multiple_of": 256,
}
del LFM2["rms_norm_eps"]
MOE: dict[str, Json] = {
    **sizes(65536, 2048, 7168, 32, 32, 8, None, 128000, 0.0, 1e6),
    "norm_eps": 1e-5,
    "conv_L_cache": 3,
    "moe_intermediate_size": 1792,
    "num_dense_layers": 2,
    "num_experts": 32,
    "num_experts_per_tok": 4,
}
del MOE["rms_norm_eps"]


def _types(config: Config) -> tuple[str, ...]:
    """Return each layer's type; older configs list the attention layers instead."""
    listed = config.counts("full_attn_idxs")
    blocks = config.blocks()
    if config.get("layer_types") is None and listed is None:
        listed = tuple(range(blocks))
    return _ideal.layer_types(
        config,
        lambda blocks: [
            "full_attention" if index in (listed or ()) else "conv" for index in range(blocks)
        ],
    )


def _lfm2_keys(config: Config) -> Draft:
    return _common(config) | {
        RMS: number(config, "norm_eps"),
        "feed_forward_length": _feed_forward(config),
    }


def _embedding_keys(config: Config) -> Keys:
    keys = _lfm2_keys(config)
    if "Lfm2Model" not in (config.strings("architectures") or ()):
        keys["attention.causal"] = False
    keys["pooling_type"] = POOLING
    return keys


def _audio_keys(config: Config) -> Keys:
    names = {"attention.sliding_window": "sliding_window", "embedding_length_out": "output_size"}
    return {**_lfm2_keys(config), **needed(config, names)}


def _converter(*takes: str, keys: Callable[[Config], Keys]) -> Converter:
    return Converter(
        takes=takes, writes="lfm2", defaults={"lfm2": LFM2}, keys=keys, ideal=_ideal_layout
    )


def _common(config: Config) -> Draft:
    kv_heads = config.need("num_key_value_heads")
    keys = base_keys(config.without("num_key_value_heads"))
    return keys | {
        "attention.head_count_kv": tuple(
            0 if kind == "conv" else kv_heads for kind in _types(config)
        ),
        "vocab_size": config.need("vocab_size"),
        "shortconv.l_cache": config.need("conv_L_cache"),
    }


def _feed_forward(config: Config) -> int:
    """Return the width that the class rounds ``block_ff_dim`` to."""
    width = config.need("block_ff_dim", "intermediate_size")
    if not config.boolean("block_auto_adjust_ff_dim"):
        return width
    width = int(2 * width / 3)
    factor = config.number("block_ffn_dim_multiplier")
    if factor is not None:
        width = int(factor * width)
    step = config.need("block_multiple_of")
    if step == 0:
        raise malformed("block_multiple_of", 0, "a number to round to")
    return step * ((width + step - 1) // step)


def _moe_keys(config: Config) -> Keys:
    return _common(config) | {
        "expert_feed_forward_length": config.need("moe_intermediate_size"),
        "leading_dense_block_count": config.need("num_dense_layers"),
        "expert_gating_func": 2,
    }


def _ideal_layout(config: Config) -> CacheLayout:
    heads = _ideal.heads(config)
    steps = max(config.need("conv_L_cache") - 1, 0)
    state = _ideal.state(conv=steps * config.need("hidden_size"))
    return _ideal.layout(state if kind == "conv" else heads for kind in _types(config))


ARCHITECTURES = (
    Architecture(
        names=("lfm2",),
        implied=_lfm2,
        converters=(
            _converter("LFM2ForCausalLM", "Lfm2ForCausalLM", keys=_lfm2_keys),
            _converter(
                "Lfm2BidirectionalForMaskedLM",
                "Lfm2BidirectionalModel",
                "Lfm2Model",
                keys=_embedding_keys,
            ),
            _converter("Lfm25AudioTokenizer", keys=_audio_keys),
        ),
        saves=frozenset({"state"}),
    ),
    Architecture(
        names=("lfm2moe",),
        implied=_lfm2,
        converters=(
            Converter(
                takes=("Lfm2MoeForCausalLM",),
                writes="lfm2moe",
                defaults={"lfm2_moe": MOE},
                keys=_moe_keys,
                ideal=_ideal_layout,
            ),
        ),
        saves=frozenset({"state"}),
    ),
)

"""DeepSeek-V4: a window of latents, and compressed rows of all that has left it.

src/models/deepseek4.cpp and src/llama-kv-cache-dsv4.cpp of llama.cpp build 11434;
``DeepseekV4Model`` in conversion/deepseek.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._base import base_keys
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._latent import INDEXER
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.arch._recipe import needed, number
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.deepseek import index_keys
from gguf_audit.layout import (
    CacheLayout,
    Compressed,
    Indexer,
    Latent,
    Layer,
    Recurrent,
    StatePart,
    Store,
)

__all__ = ["ARCHITECTURES"]

REQUIRED = (
    RMS,
    "attention.q_lora_rank",
    "attention.sliding_window",
    "expert_feed_forward_length",
    "expert_shared_count",
    "expert_weights_scale",
    "expert_weights_norm",
    "swiglu_clamp_exp",
    *INDEXER,
    "attention.output_group_count",
    "attention.output_lora_rank",
    "attention.compress_rope_freq_base",
    "hyper_connection.count",
    "hyper_connection.sinkhorn_iterations",
    "hyper_connection.epsilon",
    "hash_layer_count",
    "attention.compress_ratios",
    "expert_gating_func",
)
#: ``LLAMA_EXPERT_GATING_FUNC_TYPE_SQRT_SOFTPLUS`` (src/llama-hparams.h).
SQRT_SOFTPLUS = 4
#: Tokens per compressed row: fine rows, which an indexer picks from, and coarse ones.
FINE, COARSE = 4, 128
RATIOS = "attention.compress_ratios"
VALUE = "attention.value_length"


def _implied(hyper: Hyper) -> LlamaModel:
    check(hyper, REQUIRED)
    needs_heads(hyper)
    ratios = hyper.fields.items(RATIOS) or ()
    if len(ratios) < hyper.blocks:
        message = f"{hyper.fields.key(RATIOS)} has {len(ratios)} items for {hyper.blocks} blocks"
        raise refuse(hyper.fields, RATIOS, message)
    if require(hyper.fields, "expert_gating_func") != SQRT_SOFTPLUS:
        message = f"{hyper.fields.key('expert_gating_func')} isn't {SQRT_SOFTPLUS}"
        raise refuse(hyper.fields, "expert_gating_func", message)
    _check_lengths(hyper)
    tokens = require(hyper.fields, "attention.sliding_window")
    length = hyper.key_length_swa
    layers: list[Layer] = []
    for index in range(hyper.blocks):
        kv_heads = hyper.kv_heads[index]
        if kv_heads != 1:
            message = f"{kv_heads} key-value heads in block {index}"
            raise refuse(hyper.fields, "attention.head_count_kv", message, aborts=True)
        window = Latent(kv_heads=kv_heads, key_length=length, window_tokens=tokens)
        extra = _compressed(hyper, length, ratios[index])
        layers.append(Layer(index=index, stores=(window, *extra)))
    return hyper.model(
        layers,
        windowed=(True,) * hyper.blocks,
        traits=(Trait.ONE_TYPE, Trait.OWN_STREAMS),
        unpacked=[hyper.full(index) for index in range(hyper.blocks)],
    )


def _check_lengths(hyper: Hyper) -> None:
    """Raise Refused where the graph would assert, of heads and of what RoPE turns."""
    if hyper.key_length != hyper.value_length:
        lost = "attention.value_length" if VALUE not in hyper.fields else "attention.key_length"
        message = f"keys of {hyper.key_length} elements, values of {hyper.value_length}"
        raise refuse(hyper.fields, lost, message, aborts=True)
    rope = hyper.fields.integer("rope.dimension_count")
    rope = hyper.key_length if rope is None else rope
    picker = require(hyper.fields, "attention.indexer.key_length")
    if rope > min(hyper.key_length, picker):
        message = f"RoPE turns {rope} elements of keys of {hyper.key_length} and {picker}"
        raise refuse(hyper.fields, "rope.dimension_count", message, aborts=True)


def _compressed(hyper: Hyper, length: int, ratio: object) -> tuple[Store, ...]:
    """Return what a layer keeps of tokens that have left the window.

    A compressor holds the rows it is still working on in two f32 planes: twice 4 rows
    of two keys for fine rows, 128 of one for coarse ones.
    """
    if ratio == FINE:
        picker = require(hyper.fields, "attention.indexer.key_length")
        return (
            *_fine(length, picker),
            Recurrent(
                parts=(
                    StatePart(name="csa", elements=2 * 2 * FINE * 2 * length),
                    StatePart(name="lid", elements=2 * 2 * FINE * 2 * picker),
                )
            ),
        )
    if ratio == COARSE:
        state = StatePart(name="hca", elements=2 * COARSE * length)
        return (*_coarse(length), Recurrent(parts=(state,)))
    return ()


def _fine(length: int, picker: int) -> tuple[Store, ...]:
    return (
        Compressed(kv_heads=1, key_length=length, tokens_per_cell=FINE),
        Indexer(kv_heads=1, key_length=picker, tokens_per_cell=FINE),
    )


def _coarse(length: int) -> tuple[Store, ...]:
    return (Compressed(kv_heads=1, key_length=length, tokens_per_cell=COARSE),)


WRITTEN = {
    "rope.dimension_count": "qk_rope_head_dim",
    "attention.q_lora_rank": "q_lora_rank",
    "attention.sliding_window": "sliding_window",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
    "attention.output_group_count": "o_groups",
    "attention.output_lora_rank": "o_lora_rank",
    "attention.compress_rope_freq_base": "compress_rope_theta",
    "hyper_connection.count": "hc_mult",
    "hyper_connection.sinkhorn_iterations": "hc_sinkhorn_iters",
    "hyper_connection.epsilon": "hc_eps",
    "hash_layer_count": "num_hash_layers",
}


def _keys(config: Config) -> Keys:
    limit = number(config, "swiglu_limit")
    clamps = (limit,) * config.blocks()
    return {
        **base_keys(config),
        **needed(config, WRITTEN),
        **index_keys(config),
        "swiglu_clamp_exp": clamps,
        "swiglu_clamp_shexp": clamps,
        RATIOS: _ratios(config),
        "embedding_length_out": config.need("hidden_size") * config.need("hc_mult"),
    }


def _ratios(config: Config) -> tuple[int, ...]:
    ratios = config.counts("compress_ratios")
    if ratios is None or len(ratios) < config.blocks():
        raise malformed("compress_ratios", None, "one number per layer")
    return ratios


def _ideal_layout(config: Config) -> CacheLayout:
    length = config.need("head_dim")
    picker = config.need("index_head_dim")
    tokens = config.need("sliding_window")
    window = Latent(kv_heads=1, key_length=length, window_tokens=tokens)
    kinds = {FINE: _fine(length, picker), COARSE: _coarse(length)}
    ratios = _ratios(config)[: config.blocks()]
    return _ideal.layout((window, *kinds.get(ratio, ())) for ratio in ratios)


ARCHITECTURES = (
    Architecture(
        names=("deepseek4",),
        implied=_implied,
        converters=(
            Converter(
                takes=("DeepseekV4ForCausalLM",),
                writes="deepseek4",
                keys=_keys,
                ideal=_ideal_layout,
            ),
        ),
        saves=frozenset({"latent", "window"}),
    ),
)

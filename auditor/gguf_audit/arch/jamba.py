"""Jamba: a layer of attention after every seven of Mamba.

src/models/jamba.cpp of llama.cpp build 11434; ``JambaModel`` in conversion/jamba.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._recipe import sizes
from gguf_audit.arch._states import SSM, hybrid, selective, without_kv
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.mamba import or_else
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

#: JambaConfig of transformers 4.57.6.
DEFAULTS: dict[str, Json] = sizes(65536, 4096, 14336, 32, 32, 8, None, 262144, 1e-6, None) | {
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "mamba_d_conv": 4,
    "mamba_d_state": 16,
    "mamba_expand": 2,
    "attn_layer_offset": 4,
    "attn_layer_period": 8,
}


def _implied(hyper: Hyper) -> LlamaModel:
    check(hyper, (*SSM, RMS))
    needs_heads(hyper)
    attention = [hyper.full(index) for index in range(hyper.blocks)]
    state = selective(hyper, grouped=False)
    return hybrid(hyper, without_kv(hyper), state, attention=attention)


def _attends(config: Config) -> tuple[bool, ...]:
    offset = config.need("attn_layer_offset")
    period = config.need("attn_layer_period")
    if period == 0:
        raise malformed("attn_layer_period", 0, "a number of layers")
    return tuple(
        index >= offset and (index - offset) % period == 0 for index in range(config.blocks())
    )


def _keys(config: Config) -> Keys:
    width = config.need("hidden_size", "mamba_d_model")
    kv_heads = config.need("num_key_value_heads")
    rank = config.integer("mamba_dt_rank")
    return {
        "block_count": config.blocks(),
        "context_length": config.need("max_position_embeddings", "n_ctx"),
        "embedding_length": width,
        "feed_forward_length": config.need("intermediate_size"),
        "attention.head_count": config.need("num_attention_heads"),
        "attention.head_count_kv": tuple(
            kv_heads if attends else 0 for attends in _attends(config)
        ),
        "ssm.conv_kernel": or_else(config.integer("mamba_d_conv"), 4),
        "ssm.inner_size": config.need("mamba_expand") * width,
        "ssm.state_size": or_else(config.integer("mamba_d_state"), 16),
        "ssm.time_step_rank": -(width // -16) if rank is None else rank,
        RMS: config.number("layer_norm_epsilon", "rms_norm_eps") or 1e-6,
        "expert_count": config.need("num_local_experts", "num_experts"),
        "expert_used_count": config.need("num_experts_per_tok", "num_experts_per_token"),
    }


def _ideal_layout(config: Config) -> CacheLayout:
    heads = _ideal.heads(config)
    inner = config.need("mamba_expand") * config.need("hidden_size", "mamba_d_model")
    steps = or_else(config.integer("mamba_d_conv"), 4) - 1
    state = or_else(config.integer("mamba_d_state"), 16)
    kept = _ideal.state(conv=steps * inner, ssm=inner * state)
    return _ideal.layout(heads if attends else kept for attends in _attends(config))


ARCHITECTURES = (
    Architecture(
        names=("jamba",),
        implied=_implied,
        converters=(
            Converter(
                takes=("JambaForCausalLM",),
                writes="jamba",
                defaults={"jamba": DEFAULTS},
                keys=_keys,
                ideal=_ideal_layout,
            ),
        ),
        saves=frozenset({"state"}),
    ),
)

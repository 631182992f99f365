"""Falcon, and Falcon-H1 whose every layer has attention and a Mamba 2 side by side.

src/models/falcon.cpp and falcon-h1.cpp of llama.cpp build 11434; ``FalconModel`` and
``FalconH1Model`` in conversion/falcon.py and falcon_h1.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, RMS, check, needs_heads, plain
from gguf_audit.arch._base import rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._recipe import number
from gguf_audit.arch._states import SSM, selective
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.granite import mamba2_state
from gguf_audit.arch.mamba import or_else
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full, Layer

__all__ = ["ARCHITECTURES"]

#: FalconConfig of transformers 4.57.6.
FALCON: dict[str, Json] = {
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "layer_norm_epsilon": 1e-5,
}
#: Not in the config; every Falcon was trained on as many tokens.
CONTEXT = 2048


def _falcon_h1(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, *SSM, "ssm.group_count"))
    needs_heads(hyper)
    state = selective(hyper)
    return hyper.model(
        Layer(index=index, stores=(hyper.full(index), state)) for index in range(hyper.trunk)
    )


def _kv_heads(config: Config) -> int:
    """Return ``num_kv_heads``, or its old name, or one for all queries."""
    heads = config.integer("num_kv_heads")
    if heads is None:
        heads = config.integer("n_head_kv")
    if heads is None and config.get("multi_query") is False:
        heads = _heads(config)
    return 1 if heads is None else heads


def _heads(config: Config) -> int:
    heads = config.integer("num_attention_heads")
    return config.need("n_head") if heads is None else heads


def _falcon_keys(config: Config) -> Keys:
    width = config.need("hidden_size")
    return {
        "context_length": CONTEXT,
        "tensor_data_layout": "jploski",
        "embedding_length": width,
        "feed_forward_length": 4 * width,
        "block_count": config.blocks(),
        "attention.head_count": _heads(config),
        "attention.head_count_kv": _kv_heads(config),
        NORM: number(config, "layer_norm_epsilon"),
    }


def _falcon_ideal(config: Config) -> CacheLayout:
    heads = _heads(config)
    if heads == 0:
        raise malformed("num_attention_heads", 0, "a number of heads")
    length = config.need("hidden_size") // heads
    store = Full(kv_heads=_kv_heads(config), key_length=length, value_length=length)
    return _ideal.layout(store for _ in range(config.blocks()))


def _sizes(config: Config) -> tuple[int, int, int, int]:
    """Return kernel, inner width, state size and groups of the Mamba 2 halves."""
    return (
        or_else(config.integer("conv_kernel", "d_conv", "mamba_conv_kernel", "mamba_d_conv"), 4),
        config.need("mamba_d_ssm", "mamba_mamba_d_ssm"),
        or_else(config.integer("state_size", "d_state", "mamba_state_size", "mamba_d_state"), 128),
        config.need("n_groups", "mamba_n_groups"),
    )


def _falcon_h1_keys(config: Config) -> Keys:
    kernel, inner, state, groups = _sizes(config)
    head = or_else(config.integer("mamba_d_head", "head_dim"), 64)
    length = config.need("head_dim")
    return {
        "context_length": or_else(config.integer("max_position_embeddings"), 0),
        "embedding_length": config.need("hidden_size", "d_model", "dim"),
        "feed_forward_length": config.need("intermediate_size"),
        "attention.head_count": config.need("num_attention_heads"),
        "attention.head_count_kv": config.need("num_key_value_heads"),
        "attention.key_length": length,
        "attention.value_length": length,
        "block_count": config.blocks(),
        "vocab_size": config.need("vocab_size"),
        "ssm.conv_kernel": kernel,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": inner // head,
        "ssm.group_count": groups,
        RMS: config.number("layer_norm_epsilon", "rms_norm_eps") or 1e-5,
        "rope.freq_base": to_number("rope_theta", rope_parameters(config).get("rope_theta")),
    }


def _falcon_h1_ideal(config: Config) -> CacheLayout:
    stores = (_ideal.heads(config), mamba2_state(*_sizes(config)))
    return _ideal.layout(stores for _ in range(config.blocks()))


ARCHITECTURES = (
    Architecture(
        names=("falcon",),
        implied=plain(NORM),
        converters=(
            Converter(
                takes=("FalconForCausalLM", "RWForCausalLM"),
                writes="falcon",
                defaults={"falcon": FALCON},
                keys=_falcon_keys,
                ideal=_falcon_ideal,
            ),
        ),
    ),
    Architecture(
        names=("falcon-h1",),
        implied=_falcon_h1,
        converters=(
            Converter(
                takes=("FalconH1ForCausalLM",),
                writes="falcon-h1",
                keys=_falcon_h1_keys,
                ideal=_falcon_h1_ideal,
            ),
        ),
        saves=frozenset({"state"}),
    ),
)

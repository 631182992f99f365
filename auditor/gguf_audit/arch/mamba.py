"""Mamba 1 and 2: a state and nothing else.

src/models/mamba.cpp and mamba2.cpp of llama.cpp build 11434; ``MambaModel`` and
``Mamba2Model`` in conversion/mamba.py, which read config.json without class defaults.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check
from gguf_audit.arch._config import Config
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._states import selective
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.errors import UnsupportedError
from gguf_audit.layout import CacheLayout, Layer
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES", "NO_LIMIT", "mamba2_sizes", "or_else"]

#: Context that the converter writes where none is known.
NO_LIMIT = 1 << 20


def _implied(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    state = selective(hyper, grouped=hyper.architecture == "mamba2")
    return hyper.model(Layer(index=index, stores=(state,)) for index in range(hyper.trunk))


def or_else(value: int | None, otherwise: int) -> int:
    """Return a count, or what stands for an absent one, null and 0."""
    return value or otherwise


def _sizes(config: Config) -> tuple[int, int, int, int]:
    """Return width, kernel, inner width and state size of the first Mamba."""
    width = config.need("hidden_size", "d_model")
    kernel = or_else(config.integer("conv_kernel", "d_conv"), 4)
    inner = or_else(config.integer("intermediate_size", "d_inner"), 2 * width)
    return width, kernel, inner, or_else(config.integer("state_size", "d_state"), 16)


def _epsilon(config: Config) -> float:
    return config.number("layer_norm_epsilon", "rms_norm_eps") or 1e-5


def _mamba_keys(config: Config) -> Keys:
    width, kernel, inner, state = _sizes(config)
    if inner != 2 * width:
        where = Where(file="config.json", key="intermediate_size")
        raise UnsupportedError("the converter wants an expansion by 2", where=where)
    rank = config.integer("time_step_rank", "dt_rank")
    return {
        "context_length": NO_LIMIT,
        "embedding_length": width,
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "block_count": config.blocks(),
        "ssm.conv_kernel": kernel,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": or_else(rank, -(width // -16)),
        RMS: _epsilon(config),
        "ssm.dt_b_c_rms": config.get("model_type") == "falcon_mamba",
    }


def _mamba_ideal(config: Config) -> CacheLayout:
    _, kernel, inner, state = _sizes(config)
    kept = _ideal.state(conv=(kernel - 1) * inner, ssm=inner * state)
    return _ideal.layout(kept for _ in range(config.blocks()))


def mamba2_sizes(config: Config) -> tuple[int, int, int, int, int]:
    """Return width, kernel, inner width, state size and groups of a Mamba 2."""
    width = config.need("hidden_size", "d_model", "dim")
    expand = or_else(config.integer("mamba_expand", "expand"), 2)
    inner = config.integer("mamba_d_ssm", "intermediate_size", "d_inner")
    kernel = or_else(config.integer("conv_kernel", "d_conv"), 4)
    state = or_else(config.integer("state_size", "d_state"), 128)
    groups = or_else(config.integer("n_groups"), 1)
    return width, kernel, or_else(inner, expand * width), state, groups


def _mamba2_keys(config: Config) -> Keys:
    width, kernel, inner, state, groups = mamba2_sizes(config)
    length = or_else(config.integer("mamba_d_head", "head_dim"), 64)
    return {
        "context_length": NO_LIMIT,
        "embedding_length": width,
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "block_count": config.blocks(),
        "ssm.conv_kernel": kernel,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": inner // length,
        "ssm.group_count": groups,
        RMS: _epsilon(config),
    }


def _mamba2_ideal(config: Config) -> CacheLayout:
    _, kernel, inner, state, groups = mamba2_sizes(config)
    kept = _ideal.state(conv=(kernel - 1) * (inner + 2 * groups * state), ssm=inner * state)
    return _ideal.layout(kept for _ in range(config.blocks()))


ARCHITECTURES = (
    Architecture(
        names=("mamba",),
        implied=_implied,
        converters=(
            Converter(
                takes=("FalconMambaForCausalLM", "MambaForCausalLM", "MambaLMHeadModel"),
                writes="mamba",
                keys=_mamba_keys,
                ideal=_mamba_ideal,
            ),
        ),
        saves=frozenset({"state"}),
    ),
    Architecture(
        names=("mamba2",),
        implied=_implied,
        converters=(
            Converter(
                takes=("Mamba2ForCausalLM",),
                writes="mamba2",
                keys=_mamba2_keys,
                ideal=_mamba2_ideal,
            ),
        ),
        saves=frozenset({"state"}),
    ),
)

"""PLaMo: plain, hybrid with Mamba, and with windows.

src/models/plamo.cpp, plamo2.cpp and plamo3.cpp of llama.cpp build 11434;
``PlamoModel`` and the classes after it in conversion/plamo.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, plain, windowed
from gguf_audit.arch._base import Draft, base_keys, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._recipe import number
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.granite import grouped
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full

__all__ = ["ARCHITECTURES"]

#: In the converter, not in the config.
PLAMO_CONTEXT = 4096
PLAMO_KV_HEADS = 5


def _plamo2(hyper: Hyper) -> LlamaModel:
    # lengths are read again, for layer 0 may have no heads to divide by
    key_length = hyper.fields.integer("attention.key_length")
    value_length = hyper.fields.integer("attention.value_length")
    return grouped(
        replace(
            hyper,
            key_length=hyper.key_length if key_length is None else key_length,
            value_length=hyper.value_length if value_length is None else value_length,
        )
    )


def _plamo_keys(config: Config) -> Keys:
    return {
        "context_length": PLAMO_CONTEXT,
        "embedding_length": config.need("hidden_size"),
        "feed_forward_length": config.need("intermediate_size"),
        "block_count": config.blocks(),
        "attention.head_count": config.need("num_attention_heads"),
        "attention.head_count_kv": PLAMO_KV_HEADS,
        RMS: number(config, "rms_norm_eps"),
    }


def _plamo_ideal(config: Config) -> CacheLayout:
    return _ideal.full(config.with_values(num_key_value_heads=PLAMO_KV_HEADS))


def _or(config: Config, name: str, otherwise: int) -> int:
    value = config.integer(name)
    return otherwise if value is None else value


def _attends(config: Config) -> tuple[bool, ...]:
    """Return which layers of a PLaMo 2 attend: one in the middle of every step."""
    blocks = config.blocks()
    if config.boolean("mamba_enabled") is False:
        return (True,) * blocks
    step = _or(config, "mamba_step", 2)
    if step == 0:
        raise malformed("mamba_step", 0, "a number of layers")
    if blocks <= step // 2:
        return tuple(index == blocks - 1 for index in range(blocks))
    return tuple(index % step == step // 2 for index in range(blocks))


def _plamo2_keys(config: Config) -> Keys:
    attends = _attends(config)
    length = _or(config, "hidden_size_per_head", 128)
    heads, kv_heads = _or(config, "num_attention_heads", 32), _or(config, "num_key_value_heads", 4)
    mamba_heads = _or(config, "mamba_num_heads", 64)
    theta = rope_parameters(config).get("rope_theta", 10000.0)
    keys: Draft = {
        "vocab_size": config.need("vocab_size"),
        "context_length": _or(config, "max_position_embeddings", 2048),
        "embedding_length": _or(config, "hidden_size", 4096),
        "attention.key_length": length,
        "attention.value_length": length,
        "block_count": len(attends),
        RMS: 1e-6 if config.number("rms_norm_eps") is None else number(config, "rms_norm_eps"),
        "rope.freq_base": to_number("rope_theta", theta),
        "ssm.state_size": _or(config, "mamba_d_state", 64),
        "ssm.conv_kernel": _or(config, "mamba_d_conv", 4),
        "ssm.time_step_rank": mamba_heads,
        "ssm.inner_size": mamba_heads * length,
        "ssm.group_count": 0,
        "feed_forward_length": _or(config, "intermediate_size", 13312),
    }
    if config.boolean("mamba_enabled") is not False:
        keys["attention.head_count"] = tuple(heads if attend else 0 for attend in attends)
        keys["attention.head_count_kv"] = tuple(kv_heads if attend else 0 for attend in attends)
    return keys


def _plamo2_ideal(config: Config) -> CacheLayout:
    length = _or(config, "hidden_size_per_head", 128)
    heads = Full(
        kv_heads=_or(config, "num_key_value_heads", 4), key_length=length, value_length=length
    )
    inner = _or(config, "mamba_num_heads", 64) * length
    state = _ideal.state(
        conv=(_or(config, "mamba_d_conv", 4) - 1) * inner,
        ssm=_or(config, "mamba_d_state", 64) * inner,
    )
    return _ideal.layout(heads if attends else state for attends in _attends(config))


def _plamo3_rope(config: Config) -> Config:
    """Return a config with the yarn that a factor stands for."""
    factor = config.number("rope_scaling_factor")
    parameters = rope_parameters(config)
    if factor in (None, 1.0) or "rope_type" in parameters:
        return config
    yarn: dict[str, Json] = {
        **parameters,
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": config.need("initial_context_length"),
        "beta_fast": 32.0,
        "beta_slow": 1.0,
    }
    return config.with_values(rope_parameters=yarn)


def _plamo3_keys(config: Config) -> Keys:
    keys = base_keys(_plamo3_rope(config))
    keys["vocab_size"] = config.need("vocab_size")
    window = config.integer("window_size", "sliding_window")
    if window is not None:
        keys["attention.sliding_window"] = window
        keys["attention.sliding_window_pattern"] = config.need("sliding_window_pattern")
    return keys


def _plamo3_ideal(config: Config) -> CacheLayout:
    period = _or(config, "sliding_window_pattern", 8)
    types = _ideal.periodic(period, config.blocks())
    return _ideal.windowed(config, types, config.integer("window_size", "sliding_window"))


PLAMO3_CONVERTER = Converter(
    takes=("PLaMo3ForCausalLM", "Plamo3ForCausalLM"),
    writes="plamo3",
    keys=_plamo3_keys,
    ideal=_plamo3_ideal,
)

ARCHITECTURES = (
    Architecture(
        names=("plamo",),
        implied=plain(RMS),
        converters=(
            Converter(
                takes=("PlamoForCausalLM",), writes="plamo", keys=_plamo_keys, ideal=_plamo_ideal
            ),
        ),
    ),
    Architecture(
        names=("plamo2",),
        implied=_plamo2,
        converters=(
            Converter(
                takes=("PLaMo2ForCausalLM", "Plamo2ForCausalLM"),
                writes="plamo2",
                keys=_plamo2_keys,
                ideal=_plamo2_ideal,
            ),
        ),
        saves=frozenset({"state"}),
    ),
    Architecture(
        names=("plamo3",),
        converters=(PLAMO3_CONVERTER,),
        defaults={"rope.freq_base_swa": 10000.0},
        implied=windowed(Window(when_absent=0, zero_is_none=True, period=8), RMS),
        saves=frozenset({"window"}),
    ),
)

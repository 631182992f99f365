"""Phi: one generation of plain attention, one with a window that isn't used.

src/models/phi2.cpp, phi3.cpp and phimoe.cpp of llama.cpp build 11434: the window of a
Phi-3 is read, warned about and dropped. ``Phi2Model`` and ``Phi3MiniModel`` in
conversion/phi.py write keys of their own instead of the base ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, RMS, check, full_layers, needs_heads, plain
from gguf_audit.arch._base import Draft, rope_of_full_layers, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._recipe import filled, number, sizes
from gguf_audit.arch.architecture import Architecture, Converter, unconverted
from gguf_audit.checkpoint import Json
from gguf_audit.errors import UnsupportedError
from gguf_audit.layout import CacheLayout
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES"]

#: PhiConfig, Phi3Config and PhimoeConfig of transformers 4.57.6.
PHI: dict[str, Json] = {
    **sizes(51200, 2048, 8192, 24, 32, 32, None, 2048, 1e-5, 1e4),
    "layer_norm_eps": 1e-5,
    "partial_rotary_factor": 0.5,
}
PHI3: dict[str, Json] = {
    **sizes(32064, 3072, 8192, 32, 32, 32, None, 4096, 1e-5, 1e4),
    "partial_rotary_factor": 1.0,
    "original_max_position_embeddings": 4096,
}
PHI_MOE: dict[str, Json] = {
    **sizes(32064, 4096, 6400, 32, 32, 8, None, 131072, 1e-5, 1e6),
    "num_local_experts": 16,
    "num_experts_per_tok": 2,
}


def _implied(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    # a value of the wrong type is refused all the same
    hyper.fields.integer("attention.sliding_window")
    needs_heads(hyper)
    return full_layers(hyper)


def _dimensions(config: Config, factor: Json) -> int:
    """Return ``int(factor * width) // heads``, rounded once less than elsewhere."""
    heads = config.need("num_attention_heads", "n_head")
    if heads == 0:
        raise malformed("num_attention_heads", 0, "a number of heads")
    width = config.need("hidden_size", "n_embd")
    return int(to_number("partial_rotary_factor", factor) * width) // heads


def _phi2_keys(config: Config) -> Keys:
    width = config.need("hidden_size", "n_embd")
    heads = config.need("num_attention_heads", "n_head")
    factor = rope_parameters(config).get("partial_rotary_factor")
    if factor is None:
        where = Where(file="config.json", key="partial_rotary_factor")
        raise UnsupportedError("the converter needs partial_rotary_factor", where=where)
    return {
        "context_length": config.need("n_positions", "max_position_embeddings"),
        "embedding_length": width,
        "feed_forward_length": 4 * width,
        "block_count": config.blocks(),
        "attention.head_count": heads,
        "attention.head_count_kv": heads,
        NORM: number(config, "layer_norm_epsilon", "layer_norm_eps"),
        "rope.dimension_count": _dimensions(config, factor),
    }


def _phi3_keys(config: Config) -> Keys:
    config = filled(config, head_dim=False)
    parameters = rope_parameters(config)
    original = parameters.get("original_max_position_embeddings")
    if original is None or isinstance(original, bool) or not isinstance(original, int):
        raise malformed("original_max_position_embeddings", original, "a whole number")
    context = config.need("n_positions", "max_position_embeddings")
    theta = rope_of_full_layers(parameters).get("rope_theta")
    keys: Draft = {
        "context_length": context,
        "rope.scaling.original_context_length": original,
        "embedding_length": config.need("hidden_size", "n_embd"),
        "feed_forward_length": config.need("intermediate_size"),
        "block_count": config.blocks(),
        "attention.head_count": config.need("num_attention_heads", "n_head"),
        "attention.head_count_kv": config.need("num_key_value_heads", "n_head_kv"),
        RMS: number(config, "rms_norm_eps"),
        "rope.dimension_count": _dimensions(config, parameters.get("partial_rotary_factor", 1.0)),
        "rope.freq_base": to_number("rope_theta", theta),
        # 0 tells a Phi-4 from the rest
        "attention.sliding_window": config.integer("sliding_window") or 0,
    }
    return keys | _long_factors(config, context, original)


def _long_factors(config: Config, context: int, original: int) -> Draft:
    """Return the attention factor that goes with RoPE's long and short factors."""
    parameters = rope_parameters(config)
    kind = parameters.get("rope_type")
    if not parameters.get("long_factor"):
        return {}
    if not isinstance(kind, str) or original <= 1:
        raise malformed("rope_type", kind, "the name of a scaling")
    scale = context / original
    match kind.lower():
        case "su" | "longrope":
            factor = 1.0 if scale <= 1 else math.sqrt(1 + math.log(scale) / math.log(original))
        case "yarn":
            factor = 1.0 if scale <= 1 else 0.1 * math.log(scale) + 1.0
        case _:
            where = Where(file="config.json", key="rope_scaling")
            raise UnsupportedError(f"the converter knows no {kind!r} for Phi", where=where)
    return {"rope.scaling.attn_factor": factor}


def _moe_keys(config: Config) -> Keys:
    experts = config.need("num_local_experts", "num_experts")
    used = config.need("num_experts_per_tok", "num_experts_per_token")
    return {**_phi3_keys(config), "expert_used_count": used, "expert_count": experts}


def _windowed(config: Config) -> CacheLayout:
    tokens = config.integer("sliding_window")
    types = ("sliding_attention",) * config.blocks()
    return _ideal.windowed(filled(config, head_dim=False), types, tokens)


def _converter(
    *takes: str,
    writes: str,
    defaults: dict[str, dict[str, Json]],
    keys: Callable[[Config], Keys],
    ideal: Callable[[Config], CacheLayout] = _windowed,
) -> Converter:
    return Converter(takes=takes, writes=writes, defaults=defaults, keys=keys, ideal=ideal)


ARCHITECTURES = (
    Architecture(
        names=("phi2",),
        implied=plain(NORM),
        converters=(
            _converter(
                "PhiForCausalLM",
                writes="phi2",
                defaults={"phi": PHI},
                keys=_phi2_keys,
                ideal=_ideal.full,
            ),
        ),
    ),
    Architecture(
        names=("phi3",),
        implied=_implied,
        converters=(
            _converter(
                "Phi3ForCausalLM",
                "Phi4ForCausalLMV",
                writes="phi3",
                defaults={"phi3": PHI3},
                keys=_phi3_keys,
            ),
            unconverted("Phi3VForCausalLM", ideal=_windowed),
        ),
    ),
    Architecture(
        names=("phimoe",),
        implied=plain(RMS),
        converters=(
            _converter(
                "PhiMoEForCausalLM",
                writes="phimoe",
                defaults={"phimoe": PHI_MOE},
                keys=_moe_keys,
            ),
        ),
    ),
)

"""Ministral 3, and Mistral 4 whose files are those of a latent model.

src/models/mistral3.cpp and mistral4.cpp of llama.cpp build 11434; ``Mistral3Model`` in
conversion/mistral3.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft, base_keys, rope_parameters
from gguf_audit.arch._config import Config, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._recipe import filled, rope_whole, sizes
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.deepseek import ideal_latents, latent_keys
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

#: Ministral3Config of transformers 5.24.
MINISTRAL3: dict[str, Json] = sizes(131072, 4096, 14336, 34, 32, 8, 128, 262144, 1e-5, 1e6)


def _is_latent(config: Config) -> bool:
    return config.get("model_type") == "mistral4"


def _keys(config: Config) -> Keys:
    keys = latent_keys(config) if _is_latent(config) else _heads(config)
    return keys | _temperature(config)


def _heads(config: Config) -> Draft:
    keys = base_keys(filled(config, head_dim=False))
    keys["vocab_size"] = config.need("vocab_size")
    keys["rope.dimension_count"] = rope_whole(config)
    return keys


def _temperature(config: Config) -> Draft:
    """Return the keys of a yarn whose attention cools down with length."""
    keys: Draft = {}
    if config.get("model_type") != "ministral3":
        return keys
    parameters = rope_parameters(config)
    if parameters.get("mscale_all_dim") is not None:
        scale = to_number("mscale_all_dim", parameters["mscale_all_dim"])
        keys["rope.scaling.yarn_log_multiplier"] = scale
    beta = parameters.get("llama_4_scaling_beta")
    if beta is not None:
        keys["attention.temperature_scale"] = to_number("llama_4_scaling_beta", beta)
    return keys


def _ideal_layout(config: Config) -> CacheLayout:
    return ideal_latents(config) if _is_latent(config) else _ideal.full(config)


CONVERTER = Converter(
    takes=("Ministral3ForCausalLM", "Mistral3ForConditionalGeneration"),
    writes=lambda config: "mistral4" if _is_latent(config) else "mistral3",
    defaults={"ministral3": MINISTRAL3},
    keys=_keys,
    ideal=_ideal_layout,
)

ARCHITECTURES = (Architecture(names=("mistral3",), implied=plain(RMS), converters=(CONVERTER,)),)

"""Llama, Mistral, Mixtral and what their converter class takes.

llama.cpp never reads a window here (src/models/llama.cpp), and the converter writes
none (``LlamaModel`` in conversion/llama.py): Mistral-7B-v0.1 keeps every token.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft, base_keys
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Either, Keys
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.layout import CacheLayout
from gguf_audit.subject import Json

__all__ = ["ARCHITECTURES", "filled", "llama_keys"]

#: LlamaConfig, MistralConfig and MixtralConfig of transformers 4.57.6.
DEFAULTS: dict[str, dict[str, Json]] = {
    "llama": {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
    },
    "mistral": {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "sliding_window": 4096,
    },
    "mixtral": {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
}


def head_length(config: Config) -> int:
    """Return ``hidden_size`` / heads, which the converter takes for a head's length."""
    heads = config.need("num_attention_heads", "n_head", "n_heads")
    if heads == 0:
        raise malformed("num_attention_heads", 0, "a number of heads")
    return config.need("hidden_size", "n_embd", "dim") // heads


def filled(config: Config, *, head_dim: bool = True) -> Config:
    """Return a config with what LlamaConfig and many others compute for themselves.

    Null ``num_key_value_heads`` means one per query head and, with ``head_dim``, null
    ``head_dim`` means ``hidden_size`` / heads.
    """
    values: dict[str, Json] = {}
    if config.get("num_key_value_heads") is None:
        values["num_key_value_heads"] = config.need("num_attention_heads")
    if head_dim and config.get("head_dim") is None:
        values["head_dim"] = head_length(config)
    return config.with_values(**values)


def llama_keys(config: Config) -> Draft:
    """Return what ``LlamaModel.set_gguf_parameters`` writes."""
    keys = base_keys(config)
    keys["vocab_size"] = config.need("vocab_size")
    length = config.integer("head_dim")
    keys["rope.dimension_count"] = head_length(config) if length is None else length
    return keys


def _keys(config: Config) -> Keys:
    if config.get("model_type") in ("llama", None):
        return llama_keys(filled(config))
    keys = llama_keys(config)
    if config.get("model_type") == "mistral" and config.get("head_dim") is None:
        # only the MistralConfig of transformers 5 computes it
        for name in ("attention.key_length", "attention.value_length"):
            keys[name] = Either(None, (head_length(config),))
    return keys


def _ideal_layout(config: Config) -> CacheLayout:
    if config.get("model_type") not in ("mistral", "mixtral"):
        return _ideal.full(config)
    tokens = config.integer("sliding_window")
    return _ideal.windowed(config, ("sliding_attention",) * config.blocks(), tokens)


ARCHITECTURES = (
    Architecture(
        names=("llama",),
        implied=plain(RMS),
        converters=(
            Converter(
                takes=(
                    "LLaMAForCausalLM",
                    "LlamaForCausalLM",
                    "MistralForCausalLM",
                    "MixtralForCausalLM",
                ),
                writes="llama",
                defaults=DEFAULTS,
                keys=_keys,
                ideal=_ideal_layout,
            ),
        ),
    ),
)

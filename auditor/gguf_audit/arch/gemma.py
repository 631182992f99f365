"""Gemma 1 to 3: windows on every second, or on five of six, layers from 2 on.

src/models/gemma2.cpp and gemma3.cpp of llama.cpp build 11434; ``Gemma2Model`` and
``Gemma3Model`` in conversion/gemma.py. No pattern is written: the period is in
llama.cpp, and a config that deviates from it converts to a wrong file.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, plain, windowed
from gguf_audit.arch._base import Draft, base_keys, rope_of_full_layers, rope_parameters
from gguf_audit.arch._config import Config, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._recipe import number, sizes
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES", "DEFAULTS", "gemma3_keys"]

#: Gemma2Config and Gemma3TextConfig of transformers 4.57.6.
DEFAULTS: dict[str, dict[str, Json]] = {
    "gemma": sizes(256000, 3072, 24576, 28, 16, 16, 256, 8192, 1e-6, 1e4),
    "gemma2": {
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "sliding_window": 4096,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    "gemma3_text": {
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "sliding_window": 4096,
    },
}


def _gemma_keys(config: Config) -> Draft:
    length = config.need("head_dim")
    kv_heads = "num_key_value_heads" if "num_key_value_heads" in config else "num_attention_heads"
    return {
        "context_length": config.need("max_position_embeddings"),
        "embedding_length": config.need("hidden_size"),
        "block_count": config.blocks(),
        "feed_forward_length": config.need("intermediate_size"),
        "attention.head_count": config.need("num_attention_heads"),
        "attention.head_count_kv": config.need(kv_heads),
        "attention.layer_norm_rms_epsilon": number(config, "rms_norm_eps"),
        "attention.key_length": length,
        "attention.value_length": length,
    }


def _gemma2_keys(config: Config) -> Keys:
    return {
        **_gemma_keys(config),
        "attn_logit_softcapping": number(config, "attn_logit_softcapping"),
        "final_logit_softcapping": number(config, "final_logit_softcapping"),
        "attention.sliding_window": config.need("sliding_window"),
    }


def gemma3_keys(config: Config) -> Draft:
    """Return what ``Gemma3Model.set_gguf_parameters`` writes."""
    keys = base_keys(config)
    keys["context_length"] = _or(config.integer("max_position_embeddings"), 131072)
    keys["attention.head_count"] = _or(config.integer("num_attention_heads"), 8)
    keys["attention.head_count_kv"] = _or(config.integer("num_key_value_heads"), 4)
    length = _or(config.integer("head_dim"), 256)
    keys["attention.key_length"] = keys["attention.value_length"] = length
    eps = config.number("rms_norm_eps")
    keys["attention.layer_norm_rms_epsilon"] = 1e-6 if eps is None else eps
    theta = rope_of_full_layers(rope_parameters(config)).get("rope_theta")
    keys["rope.freq_base"] = 1e6 if theta is None else to_number("rope_theta", theta)
    softcap = config.number("final_logit_softcapping")
    if softcap:
        keys["final_logit_softcapping"] = softcap
    if config.get("sliding_window_pattern") != 1:
        keys["attention.sliding_window"] = config.need("sliding_window")
    return keys


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _gemma2_ideal(config: Config) -> CacheLayout:
    types = _ideal.layer_types(config, lambda blocks: _ideal.periodic(2, blocks))
    return _ideal.windowed(config, types, config.integer("sliding_window"))


def _gemma3_ideal(config: Config) -> CacheLayout:
    period = config.integer("sliding_window_pattern", "_sliding_window_pattern")
    period = 6 if period is None else period
    types = _ideal.layer_types(config, lambda blocks: _ideal.periodic(period, blocks))
    return _ideal.windowed(config, types, config.integer("sliding_window"))


ARCHITECTURES = (
    Architecture(
        names=("gemma",),
        implied=plain(RMS),
        converters=(
            Converter(
                takes=("GemmaForCausalLM",),
                writes="gemma",
                defaults=DEFAULTS,
                keys=_gemma_keys,
                ideal=_ideal.full,
            ),
        ),
    ),
    Architecture(
        names=("gemma2",),
        implied=windowed(Window(when_absent=4096, period=2), RMS),
        defaults={
            "attention.sliding_window": 4096,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
        },
        saves=frozenset({"window"}),
        converters=(
            Converter(
                takes=("Gemma2ForCausalLM",),
                writes="gemma2",
                defaults=DEFAULTS,
                keys=_gemma2_keys,
                ideal=_gemma2_ideal,
            ),
        ),
    ),
    Architecture(
        names=("gemma3",),
        implied=windowed(Window(when_absent=0, zero_is_none=True, period=6), RMS),
        defaults={"rope.freq_base_swa": 10000.0, "final_logit_softcapping": 0.0},
        saves=frozenset({"window"}),
        # Rnj-1 is a Gemma 3 of 32 blocks without windows
        spared=frozenset({32}),
        converters=(
            Converter(
                takes=("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"),
                writes="gemma3",
                defaults=DEFAULTS,
                keys=gemma3_keys,
                ideal=_gemma3_ideal,
            ),
        ),
    ),
)

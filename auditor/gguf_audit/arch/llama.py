"""Llama, Mistral, Mixtral and what their converter class takes.

llama.cpp never reads a window here (src/models/llama.cpp), and the converter writes
none (``LlamaModel`` in conversion/llama.py, build 11434): Mistral-7B-v0.1 keeps every token.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config
from gguf_audit.arch._keys import Either
from gguf_audit.arch._recipe import Recipe, head_length, rope_whole, sizes
from gguf_audit.arch.architecture import Architecture, unconverted
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

#: LlamaConfig, MistralConfig and MixtralConfig of transformers 4.57.6.
DEFAULTS: dict[str, dict[str, Json]] = {
    "llama": sizes(32000, 4096, 11008, 32, 32, None, None, 2048, 1e-6, 1e4),
    "mistral": sizes(32000, 4096, 14336, 32, 32, 8, None, 131072, 1e-6, 1e4)
    | {"sliding_window": 4096},
    "mixtral": sizes(32000, 4096, 14336, 32, 32, 8, None, 131072, 1e-5, 1e6)
    | {"num_local_experts": 8, "num_experts_per_tok": 2},
}
VOCABULARY = {"vocab_size": "vocab_size"}


def _head_of_mistral(config: Config, keys: Draft) -> Draft:
    if config.get("head_dim") is None and config.get("model_type") == "mistral":
        # only the MistralConfig of transformers 5 computes it
        for name in ("attention.key_length", "attention.value_length"):
            keys[name] = Either(None, (head_length(config),))
    return keys


def _windowed(config: Config) -> CacheLayout:
    if config.get("model_type") not in ("mistral", "mixtral"):
        return _ideal.full(config)
    tokens = config.integer("sliding_window")
    return _ideal.windowed(config, ("sliding_attention",) * config.blocks(), tokens)


LLAMA = Recipe(
    takes=(
        "IQuestCoderForCausalLM",
        "JanusForConditionalGeneration",
        "LLaMAForCausalLM",
        "LlamaForCausalLM",
        "LlamaModel",
        "Sarashina2VisionForCausalLM",
        "VLlama3ForCausalLM",
    ),
    writes="llama",
    defaults={"llama": DEFAULTS["llama"]},
    fills_kv_heads=True,
    fills_head_dim=True,
    needs=VOCABULARY,
    rope=rope_whole,
)
MISTRAL = Recipe(
    takes=(
        "LlavaForConditionalGeneration",
        "MistralForCausalLM",
        "MixtralForCausalLM",
        "VoxtralForConditionalGeneration",
    ),
    writes="llama",
    defaults=DEFAULTS,
    needs=VOCABULARY,
    rope=rope_whole,
    more=_head_of_mistral,
    ideal=_windowed,
)

INTERNLM3 = Recipe(
    takes=("InternLM3ForCausalLM",), writes="llama", needs=VOCABULARY, rope=rope_whole
)
EMBED = Recipe(
    takes=("LlamaBidirectionalModel",),
    writes="llama-embed",
    needs=VOCABULARY,
    rope=rope_whole,
)

#: The class of embedding models, which lack the head that the converter looks for.
HEADLESS = unconverted("MistralModel", ideal=_windowed, defaults=DEFAULTS)

ARCHITECTURES = (
    Architecture(
        names=("llama",),
        implied=plain(RMS),
        converters=(LLAMA.converter(), MISTRAL.converter(), INTERNLM3.converter(), HEADLESS),
    ),
    Architecture(names=("llama-embed",), implied=plain(RMS), converters=(EMBED.converter(),)),
)

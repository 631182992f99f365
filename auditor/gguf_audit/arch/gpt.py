"""GPT-2 and its relatives, whose converter classes write keys of their own.

src/models/gpt2.cpp, gptneox.cpp, starcoder.cpp, starcoder2.cpp, refact.cpp,
codeshell.cpp, bloom.cpp, mpt.cpp, jais.cpp, jais2.cpp and stablelm.cpp of llama.cpp build
11434; the modules of the same names in conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, RMS, plain
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._recipe import Recipe, head_length, number, rope_whole, sizes
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.checkpoint import Json
from gguf_audit.errors import UnsupportedError
from gguf_audit.layout import CacheLayout, Full
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES"]

#: GPT2Config, GPTBigCodeConfig, GPTNeoXConfig, StableLmConfig, Starcoder2Config and
#: BloomConfig of transformers 4.57.6, Jais2Config of 5.24.
GPT2: dict[str, Json] = {
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_positions": 1024,
    "layer_norm_epsilon": 1e-5,
}
NEOX: dict[str, Json] = {
    "hidden_size": 6144,
    "intermediate_size": 24576,
    "num_hidden_layers": 44,
    "num_attention_heads": 64,
    "max_position_embeddings": 2048,
    "layer_norm_eps": 1e-5,
    "rotary_pct": 0.25,
    "use_parallel_residual": True,
}
STABLELM: dict[str, Json] = {
    "hidden_size": 2560,
    "intermediate_size": 6912,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 4096,
    "layer_norm_eps": 1e-5,
    "partial_rotary_factor": 0.25,
    "use_parallel_residual": False,
}
STARCODER2: dict[str, Json] = {
    **sizes(49152, 3072, 12288, 30, 24, 2, None, 4096, 0.0, 1e4),
    "norm_epsilon": 1e-5,
}
del STARCODER2["rms_norm_eps"]
BLOOM: dict[str, Json] = {
    "hidden_size": 64,
    "n_layer": 2,
    "n_head": 8,
    "layer_norm_epsilon": 1e-5,
}


def _widths(config: Config, *, context: str, epsilon: str = NORM) -> Draft:
    """Return the keys of a model whose feed-forward width is four times its own."""
    width = config.need("n_embd")
    return {
        "block_count": config.blocks(),
        "context_length": config.need(context),
        "embedding_length": width,
        "feed_forward_length": 4 * width,
        "attention.head_count": config.need("n_head"),
        epsilon: number(config, "layer_norm_epsilon"),
    }


def _gpt2_keys(config: Config) -> Keys:
    # n_ctx isn't in the class of transformers, only in the published configs
    return _widths(config, context="n_ctx")


def _starcoder_keys(config: Config) -> Keys:
    return {**_widths(config, context="n_positions"), "attention.head_count_kv": 1}


def _refact_keys(config: Config) -> Keys:
    width = int(2 * 4 * config.need("n_embd") / 3)
    keys = _widths(config, context="n_positions", epsilon=RMS)
    rounded = 256 * ((width + 255) // 256)
    return {**keys, "attention.head_count_kv": 1, "feed_forward_length": rounded}


def _codeshell_keys(config: Config) -> Keys:
    return {
        **_widths(config, context="n_positions"),
        "attention.head_count_kv": config.need("num_query_groups"),
        "rope.freq_base": 10000.0,
        "rope.scaling.type": "linear",
        "rope.scaling.factor": 1.0,
    }


def _jais_keys(config: Config) -> Keys:
    keys = _widths(config, context="n_positions")
    return {
        **keys,
        "feed_forward_length": config.need("n_inner"),
        "attention.max_alibi_bias": 8.0,
    }


def _bloom_keys(config: Config) -> Keys:
    width = config.need("hidden_size", "n_embed")
    heads = config.need("n_head", "num_attention_heads")
    context = config.integer("seq_length")
    return {
        "context_length": width if context is None else context,
        "embedding_length": width,
        "feed_forward_length": 4 * width,
        "block_count": config.blocks(),
        "attention.head_count": heads,
        "attention.head_count_kv": heads,
        NORM: number(config, "layer_norm_epsilon"),
    }


def _mpt_keys(config: Config) -> Keys:
    width = config.need("d_model")
    attention = config.mapping("attn_config") or {}
    keys: Draft = {
        "context_length": config.need("max_seq_len"),
        "embedding_length": width,
        "block_count": config.blocks(),
        "feed_forward_length": 4 * width,
        "attention.head_count": config.need("n_heads"),
        NORM: 1e-5,
        "attention.max_alibi_bias": 0.0,
    }
    kv_heads = attention.get("kv_n_heads")
    if isinstance(kv_heads, int) and kv_heads:
        keys["attention.head_count_kv"] = kv_heads
    if attention.get("clip_qkv") is not None:
        keys["attention.clamp_kqv"] = to_number("clip_qkv", attention["clip_qkv"])
    if attention.get("alibi"):
        bias = to_number("alibi_bias_max", attention.get("alibi_bias_max"))
        keys["attention.max_alibi_bias"] = bias
    return keys


def _neox_keys(config: Config) -> Keys:
    residual = config.boolean("use_parallel_residual")
    return {
        "context_length": config.need("max_position_embeddings"),
        "embedding_length": config.need("hidden_size"),
        "block_count": config.blocks(),
        "feed_forward_length": config.need("intermediate_size"),
        "rope.dimension_count": int(number(config, "rotary_pct") * head_length(config)),
        "attention.head_count": config.need("num_attention_heads"),
        "use_parallel_residual": True if residual is None else residual,
        NORM: number(config, "layer_norm_eps"),
    }


def _stablelm_keys(config: Config) -> Keys:
    share = rope_parameters(config).get("partial_rotary_factor")
    if share is None:
        where = Where(file="config.json", key="partial_rotary_factor")
        raise UnsupportedError("the converter needs partial_rotary_factor", where=where)
    residual = config.boolean("use_parallel_residual")
    return {
        "context_length": config.need("max_position_embeddings"),
        "embedding_length": config.need("hidden_size"),
        "block_count": config.blocks(),
        "feed_forward_length": config.need("intermediate_size"),
        "rope.dimension_count": int(
            to_number("partial_rotary_factor", share) * head_length(config)
        ),
        "attention.head_count": config.need("num_attention_heads"),
        "attention.head_count_kv": config.need("num_key_value_heads"),
        "use_parallel_residual": True if residual is None else residual,
        NORM: number(config, "layer_norm_eps", "norm_eps"),
    }


def _one_head(config: Config) -> CacheLayout:
    """Return one key-value head for all queries, unless ``multi_query`` is false."""
    if config.boolean("multi_query") is False:
        return _ideal.full(config.without("num_key_value_heads"))
    return _ideal.full(config.with_values(num_key_value_heads=1))


def _grouped(config: Config) -> CacheLayout:
    return _ideal.full(config.with_values(num_key_value_heads=config.need("num_query_groups")))


def _bloom_ideal(config: Config) -> CacheLayout:
    heads = config.need("n_head", "num_attention_heads")
    return _same(config, heads, config.need("hidden_size", "n_embed"), heads)


def _mpt_ideal(config: Config) -> CacheLayout:
    heads = config.need("n_heads")
    attention = config.mapping("attn_config") or {}
    kv_heads = attention.get("kv_n_heads")
    kept = kv_heads if isinstance(kv_heads, int) and kv_heads else heads
    return _same(config, heads, config.need("d_model"), kept)


def _same(config: Config, heads: int, width: int, kv_heads: int) -> CacheLayout:
    if heads == 0:
        raise malformed("n_heads", 0, "a number of heads")
    length = width // heads
    store = Full(kv_heads=kv_heads, key_length=length, value_length=length)
    return _ideal.layout(store for _ in range(config.blocks()))


def _windowed(config: Config) -> CacheLayout:
    types = ("sliding_attention",) * config.blocks()
    return _ideal.windowed(config, types, config.integer("sliding_window"))


STARCODER2_RECIPE = Recipe(
    takes=("Starcoder2ForCausalLM",),
    writes="starcoder2",
    defaults={"starcoder2": STARCODER2},
    ideal=_windowed,
)
JAIS2_RECIPE = Recipe(
    takes=("Jais2ForCausalLM",),
    writes="jais2",
    fills_kv_heads=True,
    rope=rope_whole,
)


RUGPT3 = Recipe(takes=("RuGPT3XLForCausalLM",), writes="gpt2")


def _architecture(
    name: str,
    *takes: str,
    keys: Callable[[Config], Keys],
    ideal: Callable[[Config], CacheLayout] = _ideal.full,
    defaults: Mapping[str, Mapping[str, Json]] | None = None,
    required: tuple[str, ...] = (NORM,),
    more: tuple[Recipe, ...] = (),
) -> Architecture:
    converter = Converter(takes=takes, writes=name, keys=keys, ideal=ideal, defaults=defaults or {})
    return Architecture(
        names=(name,),
        implied=plain(*required),
        converters=(converter, *(recipe.converter() for recipe in more)),
    )


ARCHITECTURES = (
    _architecture(
        "gpt2", "GPT2LMHeadModel", keys=_gpt2_keys, defaults={"gpt2": GPT2}, more=(RUGPT3,)
    ),
    _architecture(
        "gptneox",
        "GPTNeoXForCausalLM",
        keys=_neox_keys,
        defaults={"gpt_neox": NEOX},
        required=(NORM, "use_parallel_residual"),
    ),
    _architecture(
        "starcoder",
        "GPTBigCodeForCausalLM",
        keys=_starcoder_keys,
        ideal=_one_head,
        defaults={"gpt_bigcode": GPT2},
    ),
    _architecture(
        "refact", "GPTRefactForCausalLM", keys=_refact_keys, ideal=_one_head, required=(RMS,)
    ),
    _architecture("codeshell", "CodeShellForCausalLM", keys=_codeshell_keys, ideal=_grouped),
    _architecture("jais", "JAISLMHeadModel", keys=_jais_keys),
    _architecture(
        "bloom",
        "BloomForCausalLM",
        "BloomModel",
        keys=_bloom_keys,
        ideal=_bloom_ideal,
        defaults={"bloom": BLOOM},
    ),
    _architecture("mpt", "MPTForCausalLM", keys=_mpt_keys, ideal=_mpt_ideal),
    _architecture(
        "stablelm",
        "LlavaStableLMEpochForCausalLM",
        "StableLMEpochForCausalLM",
        "StableLmForCausalLM",
        keys=_stablelm_keys,
        defaults={"stablelm": STABLELM},
    ),
    Architecture(
        names=("starcoder2",),
        implied=plain(NORM),
        converters=(STARCODER2_RECIPE.converter(),),
    ),
    Architecture(names=("jais2",), implied=plain(NORM), converters=(JAIS2_RECIPE.converter(),)),
)

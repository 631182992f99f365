"""Architectures whose every layer keeps every token, and that have no module of their own.

``load_arch_hparams`` in src/models/*.cpp of llama.cpp build 11434 for the keys that they
won't do without, the modules of conversion for what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, RMS, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import POOLING, Keys
from gguf_audit.arch._recipe import Recipe, head_length, number, rope_whole, sizes
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
VOCABULARY = {"vocab_size": "vocab_size"}
ORIGINAL = {"tensor_data_layout": "Meta AI original pth"}

#: Configuration classes of transformers 4.57.6.
ARCEE = sizes(32000, 2560, 18432, 32, 32, None, None, 4096, 1e-5, 1e4)
APERTUS = sizes(131072, 4096, 14336, 32, 32, None, None, 65536, 1e-5, 12e6)
BITNET = sizes(128256, 2560, 6912, 30, 20, 5, None, 2048, 1e-5, 5e5)
CHAMELEON: dict[str, Json] = {
    **sizes(65536, 4096, 11008, 32, 32, 32, None, 4096, 1e-5, 1e4),
    "swin_norm": False,
}
SEED_OSS = sizes(155136, 4096, 27648, 64, 80, 8, 128, 524288, 1e-6, 1e4)
SMOLLM3 = sizes(128256, 2048, 11008, 36, 16, 4, None, 32768, 1e-6, 2e6)


def _dbrx_keys(config: Config) -> Keys:
    experts = Config(config.mapping("ffn_config") or {})
    attention = Config(config.mapping("attn_config") or {})
    return {
        "block_count": config.blocks(),
        "context_length": config.need("max_seq_len"),
        "embedding_length": config.need("d_model"),
        "feed_forward_length": experts.need("ffn_hidden_size"),
        "attention.head_count": config.need("n_heads"),
        "attention.head_count_kv": attention.need("kv_n_heads"),
        "rope.freq_base": number(attention, "rope_theta"),
        "attention.clamp_kqv": number(attention, "clip_qkv"),
        "expert_count": experts.need("moe_num_experts"),
        "expert_used_count": experts.need("moe_top_k"),
        NORM: 1e-5,
    }


def _dbrx_ideal(config: Config) -> CacheLayout:
    heads = config.need("n_heads")
    attention = Config(config.mapping("attn_config") or {})
    if heads == 0:
        raise malformed("n_heads", 0, "a number of heads")
    length = config.need("d_model") // heads
    store = Full(kv_heads=attention.need("kv_n_heads"), key_length=length, value_length=length)
    return _ideal.layout(store for _ in range(config.blocks()))


def _orion_keys(config: Config) -> Keys:
    kv_heads = "num_key_value_heads" if "num_key_value_heads" in config else "num_attention_heads"
    context = ("max_sequence_length", "max_position_embeddings", "model_max_length")
    return {
        **ORIGINAL,
        "context_length": config.need(*context),
        "embedding_length": config.need("hidden_size"),
        "block_count": config.blocks(),
        "feed_forward_length": config.need("intermediate_size"),
        "attention.head_count": config.need("num_attention_heads"),
        "attention.head_count_kv": config.need(kv_heads),
        NORM: number(config, "rms_norm_eps"),
    }


def _openelm_keys(config: Config) -> Keys:
    blocks = _openelm_blocks(config)
    length = config.need("head_dim")
    return {
        "block_count": blocks,
        "context_length": config.need("max_context_length"),
        "embedding_length": config.need("model_dim"),
        "feed_forward_length": _openelm_widths(config, blocks),
        "attention.head_count": _listed(config, "num_query_heads", blocks),
        "attention.head_count_kv": _listed(config, "num_kv_heads", blocks),
        "rope.freq_base": number(config, "rope_freq_constant"),
        RMS: 1e-6,
        "rope.dimension_count": length,
        "attention.key_length": length,
        "attention.value_length": length,
    }


def _openelm_blocks(config: Config) -> int:
    return config.with_values(n_layers=config.get("num_transformer_layers")).blocks()


def _openelm_widths(config: Config, blocks: int) -> tuple[int, ...]:
    width = config.need("model_dim")
    divisor = config.need("ffn_dim_divisor")
    factors = config.items("ffn_multipliers") or []
    if len(factors) != blocks or divisor == 0:
        raise malformed("ffn_multipliers", factors, f"an array of {blocks} numbers")
    return tuple(
        _divisible(to_number("ffn_multipliers", factor) * width, divisor) for factor in factors
    )


def _divisible(value: float, divisor: int) -> int:
    """Round to a multiple of ``divisor`` and down by no more than a tenth."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def _listed(config: Config, name: str, blocks: int) -> tuple[int, ...]:
    counts = config.counts(name) or ()
    if len(counts) != blocks:
        raise malformed(name, list(counts)[:8], f"an array of {blocks} counts")
    return counts


def _openelm_ideal(config: Config) -> CacheLayout:
    length = config.need("head_dim")
    return _ideal.layout(
        Full(kv_heads=kv_heads, key_length=length, value_length=length)
        for kv_heads in _listed(config, "num_kv_heads", _openelm_blocks(config))
    )


def _pangu(config: Config, keys: Draft) -> Draft:
    if config.get("head_dim") is None:
        length = head_length(config)
        keys = {**keys, "attention.key_length": length, "attention.value_length": length}
    return keys


def _main_rope(config: Config, keys: Draft) -> Draft:
    length = config.integer("head_dim")
    return keys if length is None else {**keys, "rope.dimension_count": length}


def _swin_norm(config: Config, keys: Draft) -> Draft:
    return {**keys, "swin_norm": config.boolean("swin_norm") or False}


def _grouped(config: Config, keys: Draft) -> Draft:
    return {**keys, "expert_chunk_feed_forward_length": config.integer("head_dim") or 128}


def _plain(
    name: str,
    *takes: str,
    required: tuple[str, ...] = (RMS,),
    defaults: Mapping[str, Mapping[str, Json]] | None = None,
    keys: Callable[[Config], Keys] | None = None,
    ideal: Callable[[Config], CacheLayout] = _ideal.full,
    recipe: Recipe | None = None,
) -> Architecture:
    """Return an architecture, converted from the classes that it takes, if any."""
    known = defaults or {}
    if recipe is not None:
        made = [recipe.converter()]
    elif keys is not None:
        made = [Converter(takes=takes, writes=name, defaults=known, keys=keys, ideal=ideal)]
    elif takes:
        made = [Recipe(takes=takes, writes=name, defaults=known, ideal=ideal).converter()]
    else:
        made = []
    return Architecture(names=(name,), implied=plain(*required), converters=tuple(made))


def _like_llama(name: str, *takes: str, defaults: Mapping[str, Mapping[str, Json]]) -> Recipe:
    return Recipe(
        takes=takes,
        writes=name,
        defaults=defaults,
        fills_kv_heads=True,
        needs=VOCABULARY,
        rope=rope_whole,
    )


APERTUS_RECIPE = _like_llama("apertus", "ApertusForCausalLM", defaults={"apertus": APERTUS})
SMOLLM3_RECIPE = _like_llama("smollm3", "SmolLM3ForCausalLM", defaults={"smollm3": SMOLLM3})
ARCEE_RECIPE = Recipe(
    takes=("ArceeForCausalLM",),
    writes="arcee",
    defaults={"arcee": ARCEE},
    fills_kv_heads=True,
    fills_head_dim=True,
    needs=VOCABULARY,
    sets={"pooling_type": POOLING},
    rope=rope_whole,
)
ARCTIC_RECIPE = Recipe(
    takes=("ArcticForCausalLM",), writes="arctic", needs=VOCABULARY, rope=head_length
)
BAICHUAN_RECIPE = Recipe(
    takes=("BaiChuanForCausalLM", "BaichuanForCausalLM"),
    writes="baichuan",
    sets=ORIGINAL,
    rope=head_length,
)
XVERSE_RECIPE = Recipe(
    takes=("XverseForCausalLM",), writes="xverse", sets=ORIGINAL, rope=head_length
)
BITNET_RECIPE = Recipe(
    takes=("BitNetForCausalLM", "BitnetForCausalLM"),
    writes="bitnet",
    defaults={"bitnet": BITNET},
    fills_kv_heads=True,
    sets={"rope.scaling.type": "linear", "rope.scaling.factor": 1.0},
)
CHAMELEON_RECIPE = Recipe(
    takes=("ChameleonForCausalLM", "ChameleonForConditionalGeneration"),
    writes="chameleon",
    defaults={"chameleon": CHAMELEON},
    more=_swin_norm,
)
COG_RECIPE = Recipe(
    takes=("CogVLMForCausalLM",), writes="cogvlm", needs=VOCABULARY, rope=rope_whole
)
GROVE_RECIPE = Recipe(
    takes=("GroveMoeForCausalLM", "modeling_grove_moe.GroveMoeForCausalLM"),
    writes="grovemoe",
    copies={EXPERTS: "moe_intermediate_size"},
    sets={"experts_per_group": 2, "expert_group_scale": 0.05},
    more=_grouped,
)
MAIN_RECIPE = Recipe(takes=("MaincoderForCausalLM",), writes="maincoder", more=_main_rope)
PANGU_RECIPE = Recipe(
    takes=("PanguEmbeddedForCausalLM",),
    writes="pangu-embedded",
    needs=VOCABULARY,
    rope=rope_whole,
    more=_pangu,
)
SEED_OSS_RECIPE = Recipe(
    takes=("SeedOssForCausalLM",),
    writes="seed_oss",
    defaults={"seed_oss": SEED_OSS},
    fills_kv_heads=True,
    fills_head_dim=True,
)
TALKIE_RECIPE = Recipe(
    takes=("TalkieForCausalLM",), writes="talkie", sets={RMS: 1.1920928955078125e-07}
)
XIELU = ("xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps")

ARCHITECTURES = (
    _plain("apertus", required=(RMS, *XIELU), recipe=APERTUS_RECIPE),
    _plain("arcee", recipe=ARCEE_RECIPE),
    _plain("arctic", recipe=ARCTIC_RECIPE),
    _plain("baichuan", recipe=BAICHUAN_RECIPE),
    _plain("bitnet", recipe=BITNET_RECIPE),
    _plain("chameleon", recipe=CHAMELEON_RECIPE),
    _plain("cogvlm", recipe=COG_RECIPE),
    _plain(
        "dbrx",
        "DbrxForCausalLM",
        required=(NORM, "attention.clamp_kqv"),
        keys=_dbrx_keys,
        ideal=_dbrx_ideal,
    ),
    _plain(
        "grovemoe",
        required=(EXPERTS, "expert_group_scale", "experts_per_group", RMS),
        recipe=GROVE_RECIPE,
    ),
    _plain("internlm2", "InternLM2ForCausalLM"),
    _plain("maincoder", recipe=MAIN_RECIPE),
    _plain("openelm", "OpenELMForCausalLM", keys=_openelm_keys, ideal=_openelm_ideal),
    _plain("orion", "OrionForCausalLM", required=(NORM,), keys=_orion_keys),
    _plain("pangu-embedded", recipe=PANGU_RECIPE),
    _plain("pockettts", required=(NORM,)),
    _plain("qwen", "QWenLMHeadModel"),
    _plain("seed_oss", recipe=SEED_OSS_RECIPE),
    _plain("smollm3", recipe=SMOLLM3_RECIPE),
    _plain("talkie", required=(RMS, "logit_scale"), recipe=TALKIE_RECIPE),
    _plain("xverse", recipe=XVERSE_RECIPE),
)

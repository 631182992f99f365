"""DeepSeek V1 to V3.2: heads at first, then a latent, then an indexer beside it.

src/models/deepseek.cpp, deepseek2.cpp and deepseek32.cpp of llama.cpp build 11434,
src/llama-kv-cache-dsa.cpp; ``DeepseekModel`` and the classes after it in
conversion/deepseek.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, full_layers, needs_heads, plain
from gguf_audit.arch._base import Draft, base_keys, rope_parameters
from gguf_audit.arch._config import Config, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._latent import INDEXER, indexer, latents, packed_lengths
from gguf_audit.arch._model import Hyper, LlamaModel, refuse
from gguf_audit.arch._recipe import (
    Recipe,
    copied,
    drafts_of,
    needed,
    rope_whole,
    sizes,
    with_drafts,
)
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.checkpoint import Json
from gguf_audit.errors import UnsupportedError
from gguf_audit.gguf import Array
from gguf_audit.layout import CacheLayout, Indexer, Latent
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES", "V3", "ideal_latents", "index_keys", "latent_keys"]

EXPERTS = "expert_feed_forward_length"
SHARED = "expert_shared_count"
#: Block counts of the variants that have no rank for queries.
LITE_BLOCKS = frozenset({26, 27})
#: A lite variant of 48 blocks is known by its vocabulary.
LITE_VOCABULARY = 128256


def _deepseek2(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, "attention.kv_lora_rank", EXPERTS, SHARED))
    if not _is_lite(hyper):
        check(hyper, ("attention.q_lora_rank",))
    needs_heads(hyper)
    if packed_lengths(hyper) is None:
        # the generation before MLA was kept: keys and values of every head
        return full_layers(hyper)
    return latents(hyper, [()] * hyper.trunk)


def _is_lite(hyper: Hyper) -> bool:
    if hyper.trunk in LITE_BLOCKS:
        return True
    return hyper.trunk == 48 and _vocabulary(hyper) == LITE_VOCABULARY


def _vocabulary(hyper: Hyper) -> int | None:
    size = hyper.fields.integer("vocab_size")
    if size is not None:
        return size
    for field in hyper.fields:
        if field.key == "tokenizer.ggml.tokens" and isinstance(field.value, Array | tuple):
            return len(field.value)
    return None


def _deepseek32(hyper: Hyper) -> LlamaModel:
    check(hyper, (EXPERTS, RMS, SHARED, "expert_gating_func"))
    check(hyper, ("attention.q_lora_rank", "attention.kv_lora_rank", *INDEXER))
    needs_heads(hyper)
    if packed_lengths(hyper) is None:
        name = "attention.key_length_mla"
        raise refuse(hyper.fields, name, "deepseek32 has no other form than MLA")
    return latents(hyper, [(indexer(hyper),)] * hyper.trunk)


#: DeepseekV2Config and DeepseekV3Config of transformers 4.57.6.
V2: dict[str, Json] = {
    **sizes(32000, 4096, 11008, 32, 32, None, None, 2048, 1e-6, 1e4),
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "moe_intermediate_size": 1407,
    "first_k_dense_replace": 0,
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
V3: dict[str, Json] = {
    **sizes(129280, 7168, 18432, 61, 128, None, None, 4096, 1e-6, 1e4),
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
    "n_shared_experts": 1,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
YOUTU: dict[str, Json] = {
    **sizes(128256, 2048, 6144, 32, 16, None, None, 131072, 1e-6, 1e4),
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def latent_keys(config: Config) -> Draft:
    """Return what ``DeepseekV2Model.set_gguf_parameters`` writes for a latent."""
    epsilon = config.number("rms_norm_eps")
    config = config.with_values(
        num_key_value_heads=1, rms_norm_eps=1e-6 if epsilon is None else epsilon
    )
    keys = base_keys(config)
    rope = config.need("qk_rope_head_dim")
    rank = _rank(config)
    if rank is None:
        where = Where(file="config.json", key="kv_lora_rank")
        raise UnsupportedError(
            "the converter wants a latent, and kv_lora_rank is null", where=where
        )
    keys |= _mixture(config)
    return keys | {
        "attention.kv_lora_rank": rank,
        "attention.key_length": rank + rope,
        "attention.value_length": rank,
        "attention.key_length_mla": config.need("qk_nope_head_dim") + rope,
        "attention.value_length_mla": config.need("v_head_dim"),
    }


def _mixture(config: Config) -> Draft:
    """Return the keys of a model with or without a latent."""
    keys: Draft = {
        "leading_dense_block_count": _dense(config),
        "vocab_size": config.need("vocab_size"),
        EXPERTS: config.need("moe_intermediate_size", "intermediate_size"),
        SHARED: config.integer("n_shared_experts") or 0,
        "rope.dimension_count": config.need("qk_rope_head_dim"),
    }
    keys |= copied(
        config,
        {
            "attention.q_lora_rank": "q_lora_rank",
            "expert_count": "n_routed_experts",
            "expert_weights_scale": "routed_scaling_factor",
        },
    )
    if config.boolean("norm_topk_prob"):
        keys["expert_weights_norm"] = True
    scale = rope_parameters(config).get("mscale_all_dim")
    if scale is not None:
        keys["rope.scaling.yarn_log_multiplier"] = 0.1 * to_number("mscale_all_dim", scale)
    return keys


def _rank(config: Config) -> int | None:
    """Return the latent's rank; ``None`` for the null of a model without one."""
    return config.integer("kv_lora_rank") if "kv_lora_rank" in config else 512


def _dense(config: Config) -> int:
    dense = config.integer("first_k_dense_replace")
    if dense is not None:
        return dense
    return config.blocks() if config.integer("n_routed_experts") is None else 0


def index_keys(config: Config) -> Draft:
    """Return the keys of an indexer."""
    names = {
        "attention.indexer.head_count": "index_n_heads",
        "attention.indexer.key_length": "index_head_dim",
        "attention.indexer.top_k": "index_topk",
    }
    return needed(config, names)


def _with_drafts(config: Config) -> Draft:
    return with_drafts(latent_keys(config), config, drafts_of(config))


def _v32_keys(config: Config) -> Keys:
    keys = _with_drafts(config)
    if "nextn_predict_layers" not in keys and config.integer("num_nextn_predict_layers") == 0:
        keys["nextn_predict_layers"] = 0
    return keys | index_keys(config)


def ideal_latents(config: Config, own: tuple[bool, ...] = ()) -> CacheLayout:
    """Return a latent per layer, with an indexer on the layers that ``own`` one."""
    rank = _rank(config)
    if rank is None or config.boolean("use_mla") is False:
        return _ideal.full(config)
    store = Latent(kv_heads=1, key_length=rank + config.need("qk_rope_head_dim"))
    if not any(own):
        return _ideal.layout(store for _ in range(config.blocks()))
    picker = Indexer(kv_heads=1, key_length=config.need("index_head_dim"))
    return _ideal.layout((store, picker) if has else (store,) for has in own)


def _v32_ideal(config: Config) -> CacheLayout:
    return ideal_latents(config, (True,) * config.blocks())


V1_RECIPE = Recipe(
    takes=("DeepseekForCausalLM",),
    writes="deepseek",
    needs={
        "leading_dense_block_count": "first_k_dense_replace",
        "vocab_size": "vocab_size",
        EXPERTS: "moe_intermediate_size",
        "expert_count": "n_routed_experts",
        SHARED: "n_shared_experts",
    },
    sets={"rope.scaling.type": "none", "expert_weights_scale": 1.0},
    rope=rope_whole,
)
V2_CONVERTER = Converter(
    takes=(
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "KimiK25ForConditionalGeneration",
        "KimiVLForConditionalGeneration",
        "YoutuForCausalLM",
        "YoutuVLForConditionalGeneration",
    ),
    writes="deepseek2",
    defaults={"deepseek_v2": V2, "deepseek_v3": V3, "youtu": YOUTU},
    keys=latent_keys,
    ideal=ideal_latents,
)


def _ocr_keys(config: Config) -> Keys:
    """Return what the language model of an OCR model has: heads, though its class is V2."""
    epsilon = config.number("rms_norm_eps")
    config = config.with_values(rms_norm_eps=1e-6 if epsilon is None else epsilon)
    keys = base_keys(config) | _mixture(config)
    window = config.integer("sliding_window_size") or config.integer("sliding_window")
    if window:
        keys["attention.sliding_window"] = window
    return keys


OCR_CONVERTER = Converter(
    takes=("DeepseekOCRForCausalLM", "UnlimitedOCRForCausalLM"),
    writes="deepseek2-ocr",
    keys=_ocr_keys,
    ideal=_ideal.full,
)
GLM_LITE_CONVERTER = Converter(
    takes=("Glm4MoeLiteForCausalLM",),
    writes="deepseek2",
    keys=_with_drafts,
    ideal=ideal_latents,
)
V32_CONVERTER = Converter(
    takes=("DeepseekV32ForCausalLM",), writes="deepseek32", keys=_v32_keys, ideal=_v32_ideal
)

ARCHITECTURES = (
    Architecture(
        names=("deepseek",),
        implied=plain(RMS, EXPERTS, SHARED),
        converters=(V1_RECIPE.converter(),),
    ),
    Architecture(
        names=("deepseek2-ocr",),
        converters=(OCR_CONVERTER,),
        implied=plain(RMS, EXPERTS, SHARED),
        defaults={"expert_gating_func": 1},
    ),
    Architecture(
        names=("deepseek2", "mistral4"),
        implied=_deepseek2,
        converters=(V2_CONVERTER, GLM_LITE_CONVERTER),
        saves=frozenset({"latent"}),
    ),
    Architecture(
        names=("deepseek32",),
        implied=_deepseek32,
        converters=(V32_CONVERTER,),
        saves=frozenset({"latent"}),
    ),
)

"""ChatGLM, GLM-4 and GLM-5.

src/models/chatglm.cpp, glm4.cpp, glm4-moe.cpp and glm-dsa.cpp of llama.cpp build 11434;
conversion/glm.py and chatglm.py. GLM-4.7-Flash is written as a DeepSeek-V2.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, needs_heads, plain
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Either, Keys
from gguf_audit.arch._latent import INDEXER, indexer, latents, packed_lengths
from gguf_audit.arch._model import Hyper, LlamaModel, refuse
from gguf_audit.arch._recipe import Recipe, drafts_of, rope_share, sizes, with_drafts
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.deepseek import ideal_latents, index_keys, latent_keys
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
SHARED = "expert_shared_count"
#: From this training context on, a GLM without a list is one whose layers share indexers.
SHARING_CONTEXT = 1048576
#: Layers of GLM-5.2, where llama.cpp's own list ends.
LISTED_LAYERS = 78


def _glm_dsa(hyper: Hyper) -> LlamaModel:
    check(hyper, (EXPERTS, RMS, SHARED))
    check(hyper, ("attention.q_lora_rank", "attention.kv_lora_rank", *INDEXER))
    needs_heads(hyper)
    if packed_lengths(hyper) is None:
        name = "attention.key_length_mla"
        raise refuse(hyper.fields, name, "glm-dsa has no other form than MLA")
    return latents(hyper, [(indexer(hyper),) if own else () for own in _own_indexers(hyper)])


def _own_indexers(hyper: Hyper) -> tuple[bool, ...]:
    """Return which trunk layers have an indexer of their own."""
    listed = hyper.fields.per_block("attention.indexer.types", hyper.trunk)
    if listed is not None:
        return tuple(bool(own) for own in listed)
    if hyper.context_length < SHARING_CONTEXT:
        return (True,) * hyper.trunk
    # two layers, then the first of every four
    return tuple(
        index < 2 or (index < LISTED_LAYERS and (index - 2) % 4 == 0)
        for index in range(hyper.trunk)
    )


#: Glm4Config, Glm4MoeConfig of transformers 4.57.6, Glm4MoeLiteConfig, GlmMoeDsaConfig and
#: SolarOpenConfig of 5.24.
GLM4: dict[str, Json] = {
    **sizes(151552, 4096, 13696, 40, 32, 2, 128, 131072, 1.5625e-07, 1e4),
    "partial_rotary_factor": 0.5,
}
GLM4_MOE: dict[str, Json] = {
    **sizes(151552, 4096, 10944, 46, 96, 8, None, 131072, 1e-5, 1e4),
    "partial_rotary_factor": 0.5,
    "n_routed_experts": 128,
    "num_experts_per_tok": 8,
    "n_group": 1,
    "topk_group": 1,
    "n_shared_experts": 1,
    "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.0,
}


def _with_nextn(config: Config, keys: Draft) -> Draft:
    """Return keys with their draft blocks counted, 0 written as well."""
    drafts = drafts_of(config)
    if drafts == 0 and config.integer("num_nextn_predict_layers") == 0:
        keys["nextn_predict_layers"] = 0
    return with_drafts(keys, config, drafts)


def _chatglm_keys(config: Config) -> Keys:
    width = config.need("hidden_size", "n_embed")
    heads = config.need("n_head", "num_attention_heads")
    turned = config.integer("attention_dim")
    if turned is None:
        turned = config.need("hidden_size") // _positive(config, "num_attention_heads")
    factor = rope_parameters(config).get("partial_rotary_factor", 0.5)
    ratio = config.number("rope_ratio")
    epsilon = config.number("layernorm_epsilon")
    return {
        "context_length": _or(config, width, "seq_length"),
        "embedding_length": width,
        "feed_forward_length": _or(config, 4 * width, "ffn_hidden_size", "intermediate_size"),
        "block_count": config.blocks(),
        "attention.head_count": heads,
        "attention.head_count_kv": _kv_heads(config),
        RMS: 1e-5 if epsilon is None else epsilon,
        "rope.dimension_count": int(turned * to_number("partial_rotary_factor", factor)),
        "rope.freq_base": 10000.0 * (1.0 if ratio is None else ratio),
    }


def _or(config: Config, otherwise: int, *names: str) -> int:
    value = config.integer(*names)
    return otherwise if value is None else value


def _positive(config: Config, name: str) -> int:
    value = config.need(name)
    if value == 0:
        raise malformed(name, 0, "a number of heads")
    return value


def _kv_heads(config: Config) -> int:
    heads = config.need("n_head", "num_attention_heads")
    return _or(config, heads, "multi_query_group_num", "num_key_value_heads")


def _chatglm_ideal(config: Config) -> CacheLayout:
    length = config.integer("kv_channels", "head_dim")
    if length is None:
        length = config.need("hidden_size") // _positive(config, "num_attention_heads")
    store = Full(kv_heads=_kv_heads(config), key_length=length, value_length=length)
    return _ideal.layout(store for _ in range(config.blocks()))


GLM4_RECIPE = Recipe(
    takes=("Glm4ForCausalLM", "Glm4vForConditionalGeneration"),
    writes="glm4",
    defaults={"glm4": GLM4},
    rope=rope_share(0.5),
)
GLM_OCR_RECIPE = Recipe(
    takes=("GlmOcrForConditionalGeneration",),
    writes="glm4",
    rope=rope_share(0.5),
    more=_with_nextn,
)
GLM4_MOE_RECIPE = Recipe(
    takes=("Glm4MoeForCausalLM", "Glm4vMoeForConditionalGeneration", "SolarOpenForCausalLM"),
    writes="glm4moe",
    defaults={"glm4_moe": GLM4_MOE},
    copies={
        "expert_count": "n_routed_experts",
        EXPERTS: "moe_intermediate_size",
        SHARED: "n_shared_experts",
        "leading_dense_block_count": "first_k_dense_replace",
        "expert_weights_scale": "routed_scaling_factor",
        "expert_weights_norm": "norm_topk_prob",
    },
    sets={"expert_gating_func": 2},
    rope=rope_share(0.5),
    more=_with_nextn,
)


def _dsa_keys(config: Config) -> Keys:
    keys = latent_keys(config)
    factor = rope_parameters(config).get("partial_rotary_factor", 1.0)
    share = to_number("partial_rotary_factor", factor)
    keys["rope.dimension_count"] = int(config.need("qk_rope_head_dim") * share)
    keys = _with_nextn(config, keys) | index_keys(config)
    own = _listed_indexers(config)
    if config.strings("indexer_types") is not None:
        keys["attention.indexer.types"] = own
    else:
        # transformers 5 knows the class and fills the list in
        keys["attention.indexer.types"] = Either(None, (own,))
    return keys


def _listed_indexers(config: Config) -> tuple[bool, ...]:
    types = config.strings("indexer_types")
    if types is None:
        return (True,) * config.blocks()
    if len(types) != config.blocks():
        raise malformed("indexer_types", len(types), "one item per layer")
    return tuple(kind == "full" for kind in types)


def _dsa_ideal(config: Config) -> CacheLayout:
    return ideal_latents(config, _listed_indexers(config))


CHATGLM_CONVERTER = Converter(
    takes=("ChatGLMForConditionalGeneration", "ChatGLMModel", "GlmForCausalLM"),
    writes="chatglm",
    keys=_chatglm_keys,
    ideal=_chatglm_ideal,
)
DSA_CONVERTER = Converter(
    takes=("GlmMoeDsaForCausalLM",), writes="glm-dsa", keys=_dsa_keys, ideal=_dsa_ideal
)

ARCHITECTURES = (
    Architecture(names=("chatglm",), implied=plain(RMS), converters=(CHATGLM_CONVERTER,)),
    Architecture(
        names=("glm4",),
        implied=plain(RMS),
        converters=(GLM4_RECIPE.converter(), GLM_OCR_RECIPE.converter()),
    ),
    Architecture(
        names=("glm4moe",),
        implied=plain(EXPERTS, RMS, SHARED),
        defaults={"expert_gating_func": 2},
        converters=(GLM4_MOE_RECIPE.converter(),),
    ),
    Architecture(
        names=("glm-dsa",),
        implied=_glm_dsa,
        defaults={"expert_gating_func": 2},
        converters=(DSA_CONVERTER,),
        saves=frozenset({"latent"}),
    ),
)

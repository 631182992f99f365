"""Hunyuan: dense, of experts, and HY-V4 with a latent and a shared indexer.

src/models/hunyuan-dense.cpp, hunyuan-moe.cpp, hunyuan-vl.cpp, hy-v3.cpp and hy-v4.cpp of
llama.cpp build 11434; conversion/hunyuan.py.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, check, needs_heads, plain
from gguf_audit.arch._base import Draft, mrope_sections, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._latent import indexer, latents, packed_lengths
from gguf_audit.arch._model import Hyper, LlamaModel, refuse
from gguf_audit.arch._recipe import Recipe, drafts_of, head_length, needed, sizes, with_drafts
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.deepseek import ideal_latents, index_keys, latent_keys
from gguf_audit.checkpoint import Json

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
BOTH = ("attention.key_length_mla", "attention.value_length_mla")


def _hy_v4(hyper: Hyper) -> LlamaModel:
    required = (
        RMS,
        "attention.q_lora_rank",
        "attention.kv_lora_rank",
        *BOTH,
        EXPERTS,
        "expert_shared_count",
        "hyper_connection.count",
        "hyper_connection.epsilon",
        "hyper_connection.magnitude",
    )
    check(hyper, required)
    needs_heads(hyper)
    if packed_lengths(hyper) is None:
        raise refuse(hyper.fields, BOTH[0], "hy_v4 has no other form than MLA", aborts=True)
    if not hyper.fields.integer("attention.indexer.top_k"):
        return latents(hyper, [()] * hyper.blocks)
    rope = hyper.fields.integer("rope.dimension_count")
    rope = hyper.key_length if rope is None else rope
    length = hyper.fields.integer("attention.indexer.key_length") or 0
    if not hyper.fields.integer("attention.indexer.head_count") or length <= rope:
        name = "attention.indexer.key_length"
        raise refuse(hyper.fields, name, f"indexer keys of {length} elements, {rope} of RoPE")
    own = hyper.fields.per_block("attention.indexer.types", hyper.trunk) or (0,) * hyper.trunk
    if not own[0]:
        name = "attention.indexer.types"
        raise refuse(hyper.fields, name, "block 0 has no indexer to share")
    return latents(hyper, [(indexer(hyper),) if has else () for has in own])


#: HunYuanDenseV1Config of transformers 4.57.6.
DENSE: dict[str, Json] = sizes(290943, 4096, 11008, 32, 32, None, None, 2048, 1e-5, 1e4)
MOE: dict[str, Json] = {**DENSE, "num_experts": 1}
#: What a dynamic RoPE of alpha stands for.
LONG_CONTEXT = 256 * 1024
#: No alpha comes near this; its powers still fit a float.
MOST = 1e9


def _stretched(keys: Draft, base: float, alpha: float, length: int) -> Draft:
    """Return keys for a base that is stretched once for all lengths."""
    if length <= 2:
        raise malformed("head_dim", length, "more than 2")
    if not 0 < alpha < MOST:
        raise malformed("alpha", alpha, f"a number between 0 and {MOST:g}")
    return keys | {
        "rope.freq_base": base * alpha ** (length / (length - 2)),
        "rope.scaling.type": "none",
        "rope.scaling.factor": 1.0,
    }


def _dense_more(config: Config, keys: Draft) -> Draft:
    # experts of a dense model are a leftover that isn't written
    keys = {name: value for name, value in keys.items() if name != "expert_count"}
    if config.integer("num_local_experts", "n_routed_experts") is not None:
        keys["expert_count"] = config.need("num_local_experts", "n_routed_experts")
    return _dynamic(config, keys, alpha=50.0, length=config.integer("head_dim"))


def _dynamic(config: Config, keys: Draft, *, alpha: float, length: int | None) -> Draft:
    parameters = rope_parameters(config)
    kind = parameters.get("rope_type")
    if kind not in ("dynamic", "xdrope"):
        return keys
    base = to_number("rope_theta", parameters.get("rope_theta", 10000.0))
    alpha = to_number("alpha", parameters.get("alpha", alpha))
    length = head_length(config) if length is None else length
    keys = _stretched(keys, base, alpha, length)
    if kind == "xdrope":
        return keys
    return keys | {
        "rope.scaling.original_context_length": LONG_CONTEXT,
        "context_length": LONG_CONTEXT,
    }


def _vision_more(config: Config, keys: Draft) -> Draft:
    """Return keys for a RoPE whose sections have an alpha that llama.cpp itself applies."""
    parameters = rope_parameters(config)
    sections = parameters.get("xdrope_section")
    crossed = parameters.get("rope_type") == "xdrope"
    if parameters.get("rope_type") == "dynamic" and "mrope_section" in parameters:
        crossed, sections = True, parameters["mrope_section"]
    keys = _dense_more(config, keys)
    if not crossed:
        return keys
    if not isinstance(sections, list):
        raise malformed("xdrope_section", sections, "an array")
    context = config.need("max_position_embeddings")
    return keys | {
        "rope.freq_base": to_number("rope_theta", parameters.get("rope_theta")),
        "rope.scaling.alpha": to_number("alpha", parameters.get("alpha")),
        "rope.scaling.type": "none",
        "rope.scaling.factor": to_number("factor", parameters.get("factor", 1.0)),
        "rope.scaling.original_context_length": context,
        "context_length": context,
        "rope.dimension_sections": mrope_sections(sections),
    }


def _moe_more(config: Config, keys: Draft) -> Draft:
    keys |= {
        "expert_shared_feed_forward_length": config.need("intermediate_size"),
        EXPERTS: _same(config, "moe_intermediate_size"),
        "expert_used_count": _same(config, "moe_topk"),
        "expert_shared_count": _same(config, "num_shared_expert"),
    }
    return _dynamic(config, keys, alpha=1000.0, length=head_length(config))


def _same(config: Config, name: str) -> int:
    """Return the one value that every layer has."""
    counts = config.counts(name)
    if not counts or any(count != counts[0] for count in counts):
        raise malformed(name, None, "an array of equal numbers")
    return counts[0]


def _v3_more(config: Config, keys: Draft) -> Draft:
    width = config.need("moe_intermediate_size")
    shared = config.integer("num_shared_experts")
    norm = config.boolean("route_norm")
    scale = config.number("router_scaling_factor")
    keys |= {
        EXPERTS: width,
        "expert_shared_feed_forward_length": width * (1 if shared is None else shared),
        "expert_weights_norm": True if norm is None else norm,
        "expert_weights_scale": 1.0 if scale is None else scale,
        "expert_gating_func": 2,
    }
    return with_drafts(keys, config, drafts_of(config))


DENSE_RECIPE = Recipe(
    takes=("HunYuanDenseV1ForCausalLM",),
    writes="hunyuan-dense",
    defaults={"hunyuan_v1_dense": DENSE},
    fills_kv_heads=True,
    more=_dense_more,
)
VISION_RECIPE = Recipe(
    takes=("HunYuanVLForConditionalGeneration",),
    writes="hunyuan_vl",
    fills_kv_heads=True,
    more=_vision_more,
)
MOE_RECIPE = Recipe(
    takes=("HunYuanMoEV1ForCausalLM",),
    writes="hunyuan-moe",
    defaults={"hunyuan_v1_moe": MOE},
    fills_kv_heads=True,
    more=_moe_more,
)
SPARSE = frozenset({"sparse_attention", "deepseek_sparse_attention"})


def _own_indexers(config: Config) -> tuple[bool, ...]:
    """Return which layers pick tokens themselves; none where nothing is picked."""
    blocks = config.blocks()
    listed = config.strings("indexer_types")
    kinds = config.strings("layer_types") or () if listed is None else listed
    own = frozenset({"full"}) if listed is not None else SPARSE
    if listed is None and not any(kind in SPARSE for kind in kinds):
        return ()
    if len(kinds) < blocks:
        raise malformed("indexer_types", list(kinds)[:8], f"an array of {blocks} items")
    return tuple(kind in own for kind in kinds[:blocks])


def _leading_dense(config: Config) -> int:
    explicit = config.integer("first_k_dense_replace")
    if explicit is not None:
        return explicit
    kinds = config.strings("mlp_layer_types")
    if kinds is None:
        raise malformed("first_k_dense_replace", None, "a number of layers")
    return next((index for index, kind in enumerate(kinds) if kind != "dense"), len(kinds))


def _v4_keys(config: Config) -> Keys:
    config = config.with_values(first_k_dense_replace=_leading_dense(config))
    if config.get("n_group") == 1 and config.get("topk_group") == 1:
        config = config.without("n_group", "topk_group")
    keys = latent_keys(config) | {"expert_gating_func": 2}
    limit = config.number("swiglu_limit") or 0.0
    if limit > 0:
        keys["swiglu_clamp_exp"] = (limit,) * config.blocks()
    keys |= needed(
        config,
        {
            "hyper_connection.count": "hc_mult",
            "hyper_connection.epsilon": "hc_eps",
            "hyper_connection.magnitude": "hc_magnitude",
        },
    )
    own = _own_indexers(config)
    return {**keys, **index_keys(config), "attention.indexer.types": own} if own else keys


V4_CONVERTER = Converter(
    takes=("HYV4ForCausalLM",),
    writes="hy_v4",
    keys=_v4_keys,
    ideal=lambda config: ideal_latents(config, _own_indexers(config)),
)
V3_RECIPE = Recipe(takes=("HYV3ForCausalLM",), writes="hy_v3", more=_v3_more)

ARCHITECTURES = (
    Architecture(
        names=("hunyuan-dense",), implied=plain(RMS), converters=(DENSE_RECIPE.converter(),)
    ),
    Architecture(
        names=("hunyuan-moe",), implied=plain(RMS, EXPERTS), converters=(MOE_RECIPE.converter(),)
    ),
    Architecture(
        names=("hunyuan_vl",), implied=plain(RMS), converters=(VISION_RECIPE.converter(),)
    ),
    Architecture(
        names=("hy_v3",),
        implied=plain(RMS, EXPERTS),
        converters=(V3_RECIPE.converter(),),
        defaults={"expert_gating_func": 2},
    ),
    Architecture(
        names=("hy_v4",),
        implied=_hy_v4,
        converters=(V4_CONVERTER,),
        saves=frozenset({"latent"}),
    ),
)

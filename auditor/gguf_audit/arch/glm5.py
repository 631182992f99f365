"""GLM-5-Next: delta attention, latents and keys of pooled tokens to pick from.

src/models/glm5-next.cpp of llama.cpp build 11434; ``Glm5NextModel`` in conversion/glm.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM
from gguf_audit.arch._base import Draft, base_keys
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._recipe import drafts_of, either, needed
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.kimi import SAVES, delta_latents, linear_of, linear_state, number_of
from gguf_audit.layout import CacheLayout, Indexer, Latent

__all__ = ["ARCHITECTURES"]

GLM5 = {
    "vocab_size": "vocab_size",
    "attention.q_lora_rank": "q_lora_rank",
    "attention.kv_lora_rank": "kv_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim",
    "attention.value_length": "kv_lora_rank",
    "attention.value_length_mla": "v_head_dim",
    "attention.indexer.head_count": "index_n_heads",
    "attention.indexer.key_length": "index_head_dim",
    "attention.indexer.top_k": "index_topk",
    "attention.indexer.kpool": "index_kpool",
    "hyper_connection.count": "hc_mult",
    "hyper_connection.sinkhorn_iterations": "hc_sinkhorn_iters",
    "hyper_connection.epsilon": "hc_eps",
    "leading_dense_block_count": "first_k_dense_replace",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
}


def _glm5_attends(config: Config) -> tuple[bool, ...]:
    kinds = config.strings("layer_types") or ()
    if len(kinds) != config.blocks():
        raise malformed("layer_types", len(kinds), "one item per layer")
    return tuple(kind != "linear_attention" for kind in kinds)


def _glm5_of(config: Config, drafts: int) -> Draft:
    config = config.without("head_dim")
    linear = linear_of(config)
    keys = base_keys(config, drafts=drafts) | needed(config, GLM5)
    rank, rope = config.need("kv_lora_rank"), config.need("qk_rope_head_dim")
    tail = config.boolean("index_kpool_always_select_tail")
    keys |= {
        "attention.head_count_kv": (*map(int, _glm5_attends(config)), *(1,) * drafts),
        NORM: 1e-6,
        "ssm.conv_kernel": number_of(linear, "short_conv_kernel_size"),
        "kda.head_dim": number_of(linear, "head_dim"),
        "attention.key_length": rank + rope,
        "attention.key_length_mla": config.need("qk_nope_head_dim") + rope,
        "attention.indexer.kpool_select_tail": True if tail is None else tail,
    }
    bound = linear.get("gate_lower_bound")
    if bound is not None:
        keys["kda.gate_lower_bound"] = to_number("gate_lower_bound", bound)
    kinds = config.strings("indexer_types")
    if kinds is not None:
        keys["attention.indexer.types"] = tuple(kind == "full" for kind in kinds)
    limit = config.number("swiglu_limit")
    if limit is not None:
        clamps = (limit,) * config.blocks(drafts=drafts)
        keys |= {"swiglu_clamp_exp": clamps, "swiglu_clamp_shexp": clamps}
    return {**keys, "nextn_predict_layers": drafts} if drafts else keys


def _glm5_keys(config: Config) -> Keys:
    drafts = drafts_of(config)
    return either(_glm5_of(config, drafts), _glm5_of(config, 0))


def _glm5_ideal(config: Config) -> CacheLayout:
    """Return states and latents; some latents have keys for picking, one per pool."""
    state = linear_state(config)
    store = Latent(
        kv_heads=1, key_length=config.need("kv_lora_rank") + config.need("qk_rope_head_dim")
    )
    picker = Indexer(
        kv_heads=1,
        key_length=config.need("index_head_dim"),
        tokens_per_cell=max(config.need("index_kpool"), 1),
    )
    kinds = config.strings("indexer_types") or ("full",) * config.blocks()
    own = (*(kind == "full" for kind in kinds), *(False,) * config.blocks())
    return _ideal.layout(
        ((store, picker) if own[index] else (store,)) if attends else (state,)
        for index, attends in enumerate(_glm5_attends(config))
    )


GLM5_CONVERTER = Converter(
    takes=("Glm5NextForConditionalGeneration",),
    writes="glm5-next",
    keys=_glm5_keys,
    ideal=_glm5_ideal,
)

ARCHITECTURES = (
    Architecture(
        names=("glm5-next",),
        implied=delta_latents,
        converters=(GLM5_CONVERTER,),
        defaults={"expert_gating_func": 2, "kda.gate_lower_bound": float("-inf")},
        saves=SAVES,
    ),
)

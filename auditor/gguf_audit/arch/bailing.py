"""Bailing (Ling) and Sarvam with experts, and Bailing 3 with states and latents.

src/models/bailingmoe.cpp, bailingmoe2.cpp and bailingmoe3.cpp of llama.cpp build 11434;
conversion/bailingmoe.py and bailingmoe3.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft, base_keys, mrope_sections
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._recipe import (
    Recipe,
    copied,
    drafts_of,
    either,
    needed,
    rope_share,
    rope_whole,
    with_drafts,
)
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.kimi import SAVES, delta_latents, delta_state
from gguf_audit.errors import UnsupportedError
from gguf_audit.layout import CacheLayout, Latent
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
SHARED = "expert_shared_count"
NEEDED = {
    "vocab_size": "vocab_size",
    "leading_dense_block_count": "first_k_dense_replace",
    EXPERTS: "moe_intermediate_size",
    SHARED: "num_shared_experts",
    "expert_weights_norm": "norm_topk_prob",
}


def _second(config: Config, keys: Draft) -> Draft:
    width = config.integer("moe_shared_expert_intermediate_size")
    if width is None:
        width = config.need("moe_intermediate_size") * config.need("num_shared_experts")
    drafts = drafts_of(config)
    keys = with_drafts({**keys, "expert_shared_feed_forward_length": width}, config, drafts)
    if drafts == 0 and config.get("num_nextn_predict_layers") is not None:
        keys["nextn_predict_layers"] = 0
    return keys


FIRST_RECIPE = Recipe(
    takes=("BailingMoeForCausalLM",),
    writes="bailingmoe",
    needs=NEEDED,
    sets={"expert_weights_scale": 1.0},
    rope=rope_whole,
)
SECOND_RECIPE = Recipe(
    takes=("BailingMoeV2ForCausalLM",),
    writes="bailingmoe2",
    needs={**NEEDED, "expert_weights_scale": "routed_scaling_factor"},
    rope=rope_share(0.5),
    more=_second,
)
SARVAM_RECIPE = Recipe(
    takes=("SarvamMoEForCausalLM", "modeling_sarvam_moe.SarvamMoEForCausalLM"),
    writes="bailingmoe2",
    needs={**NEEDED, "expert_weights_scale": "routed_scaling_factor"},
    rope=rope_whole,
    more=_second,
)

BAILING = {
    "vocab_size": "vocab_size",
    "ssm.conv_kernel": "short_conv_kernel_size",
    "kda.head_dim": "head_dim",
    "kda.gate_lower_bound": "kda_lower_bound",
    "kda.safe_gate": "kda_safe_gate",
    "attention.kv_lora_rank": "kv_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim",
    "attention.value_length_mla": "v_head_dim",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "moe_shared_expert_intermediate_size",
    "leading_dense_block_count": "first_k_dense_replace",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
}


def _bailing_attends(config: Config, blocks: int) -> tuple[bool, ...]:
    """Return which layers attend: every last one of a group and what is no whole group."""
    trunk, size = config.blocks(), config.need("layer_group_size")
    if size == 0:
        raise malformed("layer_group_size", 0, "a number of layers")
    return tuple(
        index >= trunk // size * size or (index + 1) % size == 0 for index in range(blocks)
    )


def _bailing_of(config: Config, drafts: int) -> Draft:
    keys = base_keys(config.with_values(num_key_value_heads=1), drafts=drafts)
    keys |= needed(config, BAILING) | copied(config, {"attention.q_lora_rank": "q_lora_rank"})
    blocks = config.blocks(drafts=drafts)
    rank, rope = config.need("kv_lora_rank"), config.need("qk_rope_head_dim")
    shared = config.integer("num_shared_experts")
    keys |= {
        "attention.head_count_kv": tuple(map(int, _bailing_attends(config, blocks))),
        "attention.key_length": rank + rope,
        "attention.key_length_mla": config.need("qk_nope_head_dim") + rope,
        "expert_shared_count": 1 if shared is None else shared,
    }
    for key, name in (
        ("swiglu_clamp_exp", "expert_swiglu_limit_list"),
        ("swiglu_clamp_shexp", "share_expert_swiglu_limit_list"),
    ):
        limits = config.items(name)
        if limits is not None:
            numbers = [0.0 if limit is None else to_number(name, limit) for limit in limits]
            keys[key] = tuple([*numbers, *[0.0] * (blocks - len(numbers))][:blocks])
    if drafts:
        keys["nextn_predict_layers"] = drafts
    return keys


def _bailing_keys(config: Config) -> Keys:
    if not config.boolean("no_kda_lora") or not config.boolean("kda_safe_gate"):
        where = Where(file="config.json", key="no_kda_lora")
        raise UnsupportedError("the converter wants safe gates without LoRA", where=where)
    drafts = drafts_of(config)
    return either(_bailing_of(config, drafts), _bailing_of(config, 0))


def _bailing_vl_keys(config: Config) -> Keys:
    sections = mrope_sections(config.get("mrope_section"))
    return {**_bailing_keys(config), "rope.dimension_sections": (*sections[:3], 0)}


def _bailing_ideal(config: Config) -> CacheLayout:
    state = delta_state(
        kernel=config.need("short_conv_kernel_size"),
        heads=config.need("num_attention_heads"),
        length=config.need("head_dim"),
    )
    rank, rope = config.need("kv_lora_rank"), config.need("qk_rope_head_dim")
    store = Latent(kv_heads=1, key_length=rank + rope)
    attends = _bailing_attends(config, config.blocks())
    return _ideal.layout(store if attend else state for attend in attends)


BAILING_CONVERTERS = tuple(
    Converter(takes=(name,), writes="bailingmoe3", keys=keys, ideal=_bailing_ideal)
    for name, keys in (
        ("BailingMoeV3ForCausalLM", _bailing_keys),
        ("BailingMoeV3VLForConditionalGeneration", _bailing_vl_keys),
    )
)

ARCHITECTURES = (
    Architecture(
        names=("bailingmoe",),
        implied=plain(RMS, EXPERTS, SHARED),
        converters=(FIRST_RECIPE.converter(),),
    ),
    Architecture(
        names=("bailingmoe2",),
        implied=plain(RMS, EXPERTS, SHARED, "expert_gating_func"),
        converters=(SECOND_RECIPE.converter(), SARVAM_RECIPE.converter()),
    ),
    Architecture(
        names=("bailingmoe3",),
        implied=delta_latents,
        converters=BAILING_CONVERTERS,
        saves=SAVES,
    ),
)

"""Bailing (Ling) and Sarvam with experts.

src/models/bailingmoe.cpp and bailingmoe2.cpp of llama.cpp build 11434;
conversion/bailingmoe.py.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config
from gguf_audit.arch._recipe import Recipe, drafts_of, rope_share, rope_whole, with_drafts
from gguf_audit.arch.architecture import Architecture

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
)

"""Ernie 4.5, dense and with experts, and PaddleOCR-VL, which is one.

src/models/ernie4-5.cpp, ernie4-5-moe.cpp and paddleocr.cpp of llama.cpp build 11434;
conversion/ernie.py.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._recipe import Recipe, sizes
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
STEP = "interleave_moe_layer_step"

#: Ernie4_5Config and Ernie4_5_MoeConfig of transformers 4.57.6.
DENSE = sizes(103424, 1024, 3072, 18, 16, 2, 128, 131072, 1e-5, 5e5)
MOE: dict[str, Json] = {
    **sizes(103424, 2560, 12288, 28, 20, 4, None, 131072, 1e-5, 5e5),
    "moe_intermediate_size": 1536,
    "moe_num_experts": 64,
    "moe_k": 6,
    "moe_layer_interval": 1,
    "moe_layer_start_index": 1,
    "moe_num_shared_experts": 2,
}


def _shared(config: Config, keys: Draft) -> Draft:
    """Add the width of shared experts, which the converter divides by key-value heads."""
    shared = config.integer("moe_num_shared_experts")
    width, heads = config.integer("intermediate_size"), config.integer("num_key_value_heads")
    if shared and width is not None and heads is not None:
        if heads == 0:
            raise malformed("num_key_value_heads", 0, "a number of heads")
        keys = {**keys, "expert_shared_feed_forward_length": width // heads}
    return keys


DENSE_RECIPE = Recipe(
    takes=("Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"),
    writes="ernie4_5",
    defaults={"ernie4_5": DENSE},
    fills_kv_heads=True,
    fills_head_dim=True,
)
MOE_RECIPE = Recipe(
    takes=("Ernie4_5_MoeForCausalLM",),
    writes="ernie4_5-moe",
    defaults={"ernie4_5_moe": MOE},
    needs={
        "expert_count": "moe_num_experts",
        "expert_used_count": "moe_k",
        STEP: "moe_layer_interval",
        "leading_dense_block_count": "moe_layer_start_index",
    },
    copies={
        EXPERTS: "moe_intermediate_size",
        "expert_shared_count": "moe_num_shared_experts",
    },
    more=_shared,
)
PADDLE_RECIPE = Recipe(takes=("PaddleOCRVLForConditionalGeneration",), writes="paddleocr")

ARCHITECTURES = (
    Architecture(names=("ernie4_5",), implied=plain(RMS), converters=(DENSE_RECIPE.converter(),)),
    Architecture(
        names=("ernie4_5-moe",),
        implied=plain(RMS, EXPERTS, STEP),
        converters=(MOE_RECIPE.converter(),),
    ),
    Architecture(names=("paddleocr",), implied=plain(RMS), converters=(PADDLE_RECIPE.converter(),)),
)

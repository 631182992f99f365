"""Qwen2 to Qwen3 with plain attention; a window in their configs is never used.

src/models/qwen2.cpp and its kin of llama.cpp build 11434; ``Qwen2Model`` and the classes
after it in conversion/qwen.py, qwenvl.py and qwen3vl.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import POOLING
from gguf_audit.arch._recipe import Recipe, sizes
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES", "EXPERTS", "SHARED"]

SECTIONS = "rope.dimension_sections"
EXPERTS = {"expert_feed_forward_length": "moe_intermediate_size"}
SHARED = {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"}

#: Qwen2Config and its kin of transformers 4.57.6.
QWEN2 = sizes(151936, 4096, 22016, 32, 32, 32, None, 32768, 1e-6, 1e4)
QWEN2_MOE = sizes(151936, 2048, 5632, 24, 16, 16, None, 32768, 1e-6, 1e4) | {
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
}
QWEN2_VL = sizes(152064, 8192, 29568, 80, 64, 8, None, 32768, 1e-5, 1e6)
QWEN3 = sizes(151936, 4096, 22016, 32, 32, 32, 128, 32768, 1e-6, 1e4)
QWEN3_MOE = sizes(151936, 2048, 6144, 24, 32, 4, None, 32768, 1e-6, 1e4) | {
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}
QWEN3_VL = sizes(151936, 4096, 22016, 32, 32, 32, 128, 128000, 1e-6, 5e6)
QWEN3_VL_MOE = sizes(151936, 2048, 5632, 24, 16, 16, 128, 128000, 1e-6, 5e6) | {
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1408,
}


def _ideal_layout(config: Config) -> CacheLayout:
    """Return windows on the upper layers where ``use_sliding_window`` asks for them."""
    tokens = config.integer("sliding_window")
    if not config.boolean("use_sliding_window") or not tokens:
        return _ideal.full(config)
    lower = config.integer("max_window_layers") or 0
    types = _ideal.layer_types(
        config,
        lambda blocks: [
            "sliding_attention" if index >= lower else "full_attention" for index in range(blocks)
        ],
    )
    return _ideal.windowed(config, types, tokens)


#: Those made by ``Qwen2Model`` and the classes that inherit from it.
POOLED = frozenset({"qwen2", "qwen3", "qwen3vl"})


def _deepstack(config: Config, keys: Draft) -> Draft:
    vision = config.mapping("vision_config") or {}
    indexes = vision.get("deepstack_visual_indexes", [])
    if not isinstance(indexes, list):
        raise malformed("deepstack_visual_indexes", indexes, "an array")
    return {**keys, "n_deepstack_layers": len(indexes)}


def _recipe(
    *takes: str, writes: str, defaults: dict[str, dict[str, Json]], experts: bool = False
) -> Recipe:
    return Recipe(
        takes=takes,
        writes=writes,
        defaults=defaults,
        fills_kv_heads=True,
        copies=EXPERTS | SHARED if experts else {},
        sets={"pooling_type": POOLING} if writes in POOLED else {},
        more=_deepstack if writes.startswith("qwen3vl") else None,
        ideal=_ideal_layout,
    )


def _without_deepstack(config: Config, keys: Draft) -> Draft:
    del config
    return {**keys, "n_deepstack_layers": 0}


CONVERTERS = {
    "qwen2": _recipe(
        "AudioFlamingo3ForConditionalGeneration",
        "DotsOCRForCausalLM",
        "KORMoForCausalLM",
        "Qwen2AudioForConditionalGeneration",
        "Qwen2ForCausalLM",
        "Qwen2Model",
        writes="qwen2",
        defaults={"qwen2": QWEN2},
    ),
    "qwen2moe": _recipe(
        "Qwen2MoeForCausalLM", writes="qwen2moe", defaults={"qwen2_moe": QWEN2_MOE}, experts=True
    ),
    "qwen2vl": _recipe(
        "Qwen2VLForConditionalGeneration",
        "Qwen2VLModel",
        "Qwen2_5OmniModel",
        "Qwen2_5_VLForConditionalGeneration",
        writes="qwen2vl",
        defaults=dict.fromkeys(
            ("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), QWEN2_VL
        ),
    ),
    "qwen3": _recipe(
        "Qwen3ForCausalLM",
        "Qwen3Model",
        "StepVLForConditionalGeneration",
        writes="qwen3",
        defaults={"qwen3": QWEN3},
    ),
    "qwen3moe": _recipe(
        "Qwen3MoeForCausalLM", writes="qwen3moe", defaults={"qwen3_moe": QWEN3_MOE}, experts=True
    ),
    "qwen3vl": _recipe(
        "Qwen3VLForConditionalGeneration",
        writes="qwen3vl",
        defaults={"qwen3_vl_text": QWEN3_VL},
    ),
    "qwen3vlmoe": _recipe(
        "Qwen3VLMoeForConditionalGeneration",
        writes="qwen3vlmoe",
        defaults={"qwen3_vl_moe_text": QWEN3_VL_MOE},
        experts=True,
    ),
}


#: Audio models whose thinker is a Qwen3-VL.
ASR = replace(
    CONVERTERS["qwen3vl"],
    takes=("Qwen3ASRForConditionalGeneration",),
    defaults={},
    more=_without_deepstack,
)
OMNI = replace(
    CONVERTERS["qwen3vlmoe"],
    takes=("Qwen3OmniMoeForConditionalGeneration",),
    defaults={},
    more=_without_deepstack,
)


def _architecture(name: str, *required: str, more: tuple[Recipe, ...] = ()) -> Architecture:
    recipes = (CONVERTERS[name], *more)
    return Architecture(
        names=(name,),
        implied=plain(*required),
        converters=tuple(recipe.converter() for recipe in recipes),
    )


ARCHITECTURES = (
    _architecture("qwen2", RMS),
    _architecture("qwen2moe", RMS),
    _architecture("qwen2vl", SECTIONS),
    _architecture("qwen3", RMS),
    _architecture("qwen3moe", RMS),
    _architecture("qwen3vl", SECTIONS, RMS, more=(ASR,)),
    _architecture("qwen3vlmoe", SECTIONS, RMS, more=(OMNI,)),
    Architecture(names=("qwen3tts",), implied=plain(SECTIONS, RMS)),
)

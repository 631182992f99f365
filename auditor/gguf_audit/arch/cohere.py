"""Command R and its followers: no RoPE scaling, windows from Command R7B on.

src/models/command-r.cpp, cohere2.cpp and cohere2moe.cpp of llama.cpp build 11434;
conversion/command_r.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, RMS, Window, check, plain, windowed
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Either
from gguf_audit.arch._model import Hyper, LlamaModel, refuse
from gguf_audit.arch._recipe import Recipe, drafts_of, head_length, sizes, with_drafts
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"

#: CohereConfig and Cohere2Config of transformers 4.57.6.
COHERE: dict[str, Json] = {
    **sizes(256000, 8192, 22528, 40, 64, None, None, 8192, 0.0, 1e4),
    "layer_norm_eps": 1e-5,
    "logit_scale": 0.0625,
}
del COHERE["rms_norm_eps"]
COHERE2: dict[str, Json] = {**COHERE, "sliding_window": 4096}
NO_SCALING = {"rope.scaling.type": "none"}


def _cohere2moe(hyper: Hyper) -> LlamaModel:
    if NORM not in hyper.fields and RMS not in hyper.fields:
        raise refuse(hyper.fields, NORM, f"{hyper.fields.key(NORM)} is absent")
    check(hyper, ("logit_scale", "leading_dense_block_count", EXPERTS))
    return windowed(Window(period=4, dense_first=True))(hyper)


def _context(config: Config, keys: Draft) -> Draft:
    # max_position_embeddings is too small in Command R's config
    context = config.need("model_max_length", "max_position_embeddings")
    return {**keys, "context_length": context}


def _turned(config: Config) -> int:
    share = config.get("rotary_pct")
    share = 1.0 if share is None else to_number("rotary_pct", share)
    return int(share * head_length(config))


def _windows(config: Config) -> CacheLayout:
    period = config.integer("sliding_window_pattern")
    types = _ideal.layer_types(
        config, lambda blocks: _ideal.periodic(4 if period is None else period, blocks)
    )
    return _ideal.windowed(config, types, config.integer("sliding_window"))


def _moe_more(config: Config, keys: Draft) -> Draft:
    width = config.need("intermediate_size")
    shared = config.integer("num_shared_experts") or 0
    types = config.strings("layer_types")
    if types is None:
        raise malformed("layer_types", None, "an array of layer types")
    norm = config.boolean("norm_topk_prob")
    keys |= {
        "attention.sliding_window_pattern": tuple(kind == "sliding_attention" for kind in types),
        EXPERTS: width,
        "leading_dense_block_count": _dense(config),
        "expert_weights_norm": False if norm is None else norm,
        "rope.dimension_count": config.need("head_dim"),
    }
    if shared:
        keys["expert_shared_count"] = shared
        keys["expert_shared_feed_forward_length"] = width * shared
    if "expert_gating_func" not in keys:
        # a default of the class that transformers 5 knows
        keys["expert_gating_func"] = Either(None, (1,))
    return with_drafts(keys, config, drafts_of(config))


def _dense(config: Config) -> int:
    types = config.strings("mlp_layer_types")
    if types is None:
        return config.integer("first_k_dense_replace") or 0
    return next((index for index, kind in enumerate(types) if kind != "dense"), len(types))


WINDOWED = {
    "logit_scale": "logit_scale",
    "attention.sliding_window": "sliding_window",
    "vocab_size": "vocab_size",
}
COMMAND_R_RECIPE = Recipe(
    takes=("CohereForCausalLM",),
    writes="command-r",
    defaults={"cohere": COHERE},
    fills_kv_heads=True,
    needs={"logit_scale": "logit_scale"},
    sets=NO_SCALING,
    more=_context,
)
COHERE2_RECIPE = Recipe(
    takes=("Cohere2ForCausalLM",),
    writes="cohere2",
    defaults={"cohere2": COHERE2},
    fills_kv_heads=True,
    fills_head_dim=True,
    needs=WINDOWED,
    sets=NO_SCALING,
    rope=_turned,
    ideal=_windows,
)
MOE_RECIPE = Recipe(
    takes=("Cohere2MoeForCausalLM",),
    writes="cohere2moe",
    needs=WINDOWED,
    sets=NO_SCALING,
    more=_moe_more,
    ideal=_windows,
)

ARCHITECTURES = (
    Architecture(
        names=("command-r",), implied=plain(NORM), converters=(COMMAND_R_RECIPE.converter(),)
    ),
    Architecture(
        names=("cohere2",),
        implied=windowed(Window(period=4), "logit_scale", NORM),
        converters=(COHERE2_RECIPE.converter(),),
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("cohere2moe",),
        defaults={"expert_gating_func": 2},
        implied=_cohere2moe,
        converters=(MOE_RECIPE.converter(),),
        saves=frozenset({"window"}),
    ),
)

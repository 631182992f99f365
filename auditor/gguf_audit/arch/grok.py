"""Grok: plain attention that llama.cpp never runs with flash attention.

``llama_init_from_model`` (src/llama-context.cpp of llama.cpp build 11434) forces it off,
and so refuses quantised values. ``GrokModel`` in conversion/grok.py.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config
from gguf_audit.arch._model import Trait
from gguf_audit.arch._recipe import Recipe, number, rope_whole
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

#: src/models/grok.cpp: what Grok-1 files, which lack these keys, were made for.
DEFAULTS = {
    "attention.output_scale": 0.08838834764831845,
    "attn_logit_softcapping": 30.0,
    "embedding_scale": 78.38367176906169,
    "final_logit_softcapping": 0.0,
    "logit_scale": 0.5773502691896257,
    "rope.scaling.yarn_beta_fast": 8.0,
    "router_logit_softcapping": 30.0,
}

#: Key -> name in the config, where the converter has its own default or none.
YARN = {
    "rope.scaling.factor": "scaling_factor",
    "rope.scaling.yarn_ext_factor": "extrapolation_factor",
    "rope.scaling.yarn_attn_factor": "attn_factor",
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}


def _more(config: Config, keys: Draft) -> Draft:
    attention, router = (
        config.number("attn_logit_softcapping"),
        config.number("router_logit_softcapping"),
    )
    scale = config.number("attn_output_multiplier")
    keys = {
        **keys,
        "attn_logit_softcapping": 30.0 if attention is None else attention,
        "router_logit_softcapping": 30.0 if router is None else router,
        "attention.output_scale": max(rope_whole(config), 1) ** -0.5 if scale is None else scale,
        "embedding_scale": number(config, "embedding_multiplier_scale"),
        "logit_scale": number(config, "output_multiplier_scale"),
    }
    if final := config.number("final_logit_softcapping"):
        keys["final_logit_softcapping"] = final
    if config.get("rope_type") in ("yarn", "original"):
        keys |= {name: number(config, source) for name, source in YARN.items()}
        keys["rope.scaling.type"] = "yarn"
        original = config.need("original_max_position_embeddings")
        keys["rope.scaling.original_context_length"] = original
    if length := config.integer("attn_temperature_len"):
        keys["attention.temperature_length"] = length
    return keys


RECIPE = Recipe(
    takes=("Grok1ForCausalLM", "GrokForCausalLM"),
    writes="grok",
    copies={"expert_feed_forward_length": "moe_intermediate_size"},
    more=_more,
)

ARCHITECTURES = (
    Architecture(
        names=("grok",),
        implied=plain(RMS, traits=(Trait.NO_FLASH,)),
        converters=(RECIPE.converter(),),
        defaults=DEFAULTS,
    ),
)

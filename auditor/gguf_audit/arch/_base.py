"""Keys that the official converter writes for most models.

``TextModel.__init__`` and ``TextModel.set_gguf_parameters`` (conversion/base.py of
llama.cpp build 11434). Architectures add to these, drop some or write others.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Either, Written
from gguf_audit.checkpoint import Json
from gguf_audit.errors import UnsupportedError
from gguf_audit.where import Where

__all__ = ["Draft", "base_keys", "rope_parameters"]

#: Keys while they are being put together.
Draft = dict[str, Written | Either]

#: ``expert_gating_func`` by the name that a config gives it.
GATING = {"softmax": 1, "sigmoid": 2, "sqrtsoftplus": 4}


def base_keys(config: Config, *, drafts: int = 0) -> Draft:
    """Return what every architecture writes unless its own code says otherwise.

    ``drafts`` blocks for drafting (MTP) are counted in. Raises MalformedError for
    unusable values and UnsupportedError where the converter itself gives up.
    """
    keys: Draft = {"block_count": config.blocks(drafts=drafts)}
    context = (
        "max_position_embeddings",
        "n_ctx",
        "n_positions",
        "max_length",
        "max_sequence_length",
        "model_max_length",
    )
    _count(keys, "context_length", config, *context)
    _count(keys, "embedding_length", config, "hidden_size", "n_embd", "dim")
    _feed_forward(keys, config)
    _count(keys, "attention.head_count", config, "num_attention_heads", "n_head", "n_heads")
    _count(keys, "attention.head_count_kv", config, "num_key_value_heads", "n_kv_heads")
    if config.get("is_causal") is False:
        keys["attention.causal"] = False
    keys |= rope_keys(config)
    eps = ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")
    _number(keys, "attention.layer_norm_rms_epsilon", config, "rms_norm_eps", "norm_eps")
    _number(keys, "attention.layer_norm_epsilon", config, *eps)
    _experts(keys, config)
    if config.get("head_dim") is not None:
        keys["attention.key_length"] = keys["attention.value_length"] = config.need("head_dim")
    return keys


def _feed_forward(keys: Draft, config: Config) -> None:
    name = config.first(
        "prefix_dense_intermediate_size",
        "dense_intermediate_size",
        "intermediate_size",
        "n_inner",
        "hidden_dim",
    )
    if name is None or config.get(name) is None:
        return
    if isinstance(config.get(name), list):
        keys["feed_forward_length"] = config.counts(name) or ()
    else:
        keys["feed_forward_length"] = config.need(name)


def _experts(keys: Draft, config: Config) -> None:
    counts = ("num_local_experts", "num_experts", "n_routed_experts")
    used = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts")
    _count(keys, "expert_count", config, *counts)
    _count(keys, "expert_used_count", config, *used)
    _count(keys, "expert_group_count", config, "n_group")
    _count(keys, "expert_group_used_count", config, "topk_group")
    gating = config.string(
        "score_function",
        "scoring_func",
        "score_func",
        "moe_router_activation",
        "moe_router_activation_func",
        "expert_selection_fn",
    )
    if gating is None:
        return
    if gating not in GATING:
        where = Where(file="config.json", key="scoring_func")
        raise UnsupportedError(f"the converter knows no expert gating {gating!r}", where=where)
    keys["expert_gating_func"] = GATING[gating]


def _count(keys: Draft, name: str, config: Config, *aliases: str) -> None:
    value = config.integer(*aliases)
    if value is not None:
        keys[name] = value


def _number(keys: Draft, name: str, config: Config, *aliases: str) -> None:
    value = config.number(*aliases)
    if value is not None:
        keys[name] = value


def rope_parameters(config: Config) -> dict[str, Json]:
    """Return RoPE's parameters with what stands elsewhere in a config filled in."""
    name = "rope_parameters" if "rope_parameters" in config else "rope_scaling"
    parameters = dict(config.mapping(name) or {})
    if "full_attention" in parameters or "sliding_attention" in parameters:
        return parameters
    local = config.first(
        "local_rope_theta",
        "rope_local_theta",
        "rope_theta_local",
        "swa_rope_theta",
        "rope_local_base_freq",
    )
    if local is not None and config.get(local) is not None:
        parameters["sliding_attention"] = {"rope_theta": config.get(local)}
    aliases = {
        "rope_theta": (
            "global_rope_theta",
            "rope_global_theta",
            "rope_theta_global",
            "rope_theta",
            "rotary_emb_base",
        ),
        "partial_rotary_factor": ("partial_rotary_factor", "rope_pct", "rope_percent"),
        "original_max_position_embeddings": ("original_max_position_embeddings",),
    }
    for key, names in aliases.items():
        found = config.first(*names)
        if key not in parameters and found is not None and config.get(found) is not None:
            parameters[key] = config.get(found)
    if "rope_type" not in parameters and parameters.get("type") is not None:
        parameters["rope_type"] = parameters["type"]
    return parameters


def rope_of_full_layers(parameters: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the part that holds for layers that attend to everything."""
    part = parameters.get("full_attention", parameters)
    if not isinstance(part, dict):
        raise malformed("rope_parameters", part, "an object")
    return part


def rope_keys(config: Config) -> Draft:
    """Return the ``rope.*`` keys that every architecture writes."""
    keys: Draft = {}
    parameters = rope_parameters(config)
    full = rope_of_full_layers(parameters)
    kind = full.get("rope_type")
    if kind is not None and not isinstance(kind, str):
        raise malformed("rope_type", kind, "a string")
    if kind in ("linear", "yarn") and full.get("factor") is not None:
        keys["rope.scaling.type"] = kind
        keys["rope.scaling.factor"] = to_number("factor", full["factor"])
        if kind == "yarn":
            keys |= _yarn(config, full)
    elif kind in ("su", "longrope"):
        keys["rope.scaling.type"] = "longrope"
    sections = parameters.get("mrope_section")
    if sections is not None:
        keys["rope.dimension_sections"] = mrope_sections(sections)
    if full.get("rope_theta") is not None:
        keys["rope.freq_base"] = to_number("rope_theta", full["rope_theta"])
    sliding = parameters.get("sliding_attention")
    if isinstance(sliding, dict) and sliding.get("rope_theta") is not None:
        keys["rope.freq_base_swa"] = to_number("rope_theta", sliding["rope_theta"])
    return keys


def _yarn(config: Config, full: Mapping[str, Json]) -> Draft:
    original = full.get("original_max_position_embeddings")
    if original is None:
        # transformers 5 fills it in; 4.57 lets the conversion fail
        original = config.need("max_position_embeddings")
    if isinstance(original, bool) or not isinstance(original, int):
        raise malformed("original_max_position_embeddings", original, "a whole number")
    keys: Draft = {"rope.scaling.original_context_length": original}
    named = {
        "rope.scaling.yarn_ext_factor": ("extrapolation_factor",),
        "rope.scaling.yarn_attn_factor": ("attention_factor", "attn_factor"),
        "rope.scaling.yarn_beta_fast": ("beta_fast",),
        "rope.scaling.yarn_beta_slow": ("beta_slow",),
    }
    for key, names in named.items():
        found = next((name for name in names if name in full), None)
        if found is not None and full[found] is not None:
            keys[key] = to_number(found, full[found])
    return keys


def mrope_sections(sections: Json) -> tuple[int, ...]:
    """Return the four sections of multimodal RoPE, padded with zeros."""
    if not isinstance(sections, list):
        raise malformed("mrope_section", sections, "an array")
    padded: list[int] = []
    for section in [*sections, 0, 0, 0, 0][:4]:
        if isinstance(section, bool) or not isinstance(section, int) or section < 0:
            raise malformed("mrope_section", sections, "an array of whole numbers")
        padded.append(section)
    return tuple(padded)

"""Nemotron and Nemotron-H, a hybrid of Mamba 2, attention and feed-forward layers.

src/models/nemotron.cpp and nemotron-h.cpp of llama.cpp build 11434; ``NemotronModel``
and ``NemotronHModel`` in conversion/nemotron.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, check, needs_heads, plain
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Either, Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._recipe import Recipe, copied, needed, number, sizes
from gguf_audit.arch._states import SSM, hybrid, selective
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.granite import hybrid_keys, mamba2_state
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full, Recurrent

__all__ = ["ARCHITECTURES"]

#: NemotronConfig of transformers 4.57.6.
NEMOTRON: dict[str, Json] = {
    **sizes(256000, 6144, 24576, 32, 48, None, 128, 4096, 1e-6, 1e4),
    "norm_eps": 1e-5,
    "partial_rotary_factor": 0.5,
}
del NEMOTRON["rms_norm_eps"]


def _nemotron_h(hyper: Hyper) -> LlamaModel:
    check(hyper, (*SSM, "ssm.group_count", NORM))
    needs_heads(hyper)
    recurrent = tuple(
        index < hyper.trunk and hyper.kv_heads[index] == 0 and hyper.feed_forward[index] == 0
        for index in range(hyper.blocks)
    )
    attention = [
        hyper.full(index) if hyper.feed_forward[index] == 0 else None
        for index in range(hyper.blocks)
    ]
    return hybrid(hyper, recurrent, selective(hyper), attention=attention)


def _plain_keys(config: Config, keys: Draft) -> Draft:
    keys[NORM] = number(config, "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
    parameters = rope_parameters(config)
    share = to_number("partial_rotary_factor", parameters.get("partial_rotary_factor"))
    heads = config.need("num_attention_heads", "n_head")
    if heads == 0:
        raise malformed("num_attention_heads", 0, "a number of heads")
    keys["rope.dimension_count"] = int(share * config.need("hidden_size", "n_embd")) // heads
    factor = config.get("factor") or parameters.get("factor")
    keys["rope.scaling.type"] = "none" if factor is None else "linear"
    if factor is not None:
        keys["rope.scaling.factor"] = to_number("factor", factor)
    return keys


#: Letters of ``hybrid_override_pattern`` and names of ``layers_block_type``.
STATES = frozenset({"M", "mamba", "linear_attention"})
ATTENTION = frozenset({"*", "attention", "full_attention"})
EXPERTS = frozenset({"E", "moe"})


def _pattern(config: Config) -> Sequence[str]:
    """Return each layer's kind; ``num_hidden_layers`` may be out of date beside a list."""
    letters = config.get("hybrid_override_pattern")
    if letters:
        if not isinstance(letters, str):
            raise malformed("hybrid_override_pattern", letters, "a string")
        if len(letters) != config.blocks():
            raise malformed("hybrid_override_pattern", len(letters), "one letter per layer")
        return letters
    kinds = config.strings("layers_block_type")
    if kinds is None:
        raise malformed("hybrid_override_pattern", None, "a string")
    config.with_values(num_hidden_layers=len(kinds)).blocks()
    return kinds


def _has_experts(config: Config) -> bool:
    return "num_experts_per_tok" in config


def _writes(config: Config) -> str:
    return "nemotron_h_moe" if _has_experts(config) else "nemotron_h"


MOE = {
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "moe_shared_expert_intermediate_size",
    "expert_count": "n_routed_experts",
    "expert_shared_count": "n_shared_experts",
    "expert_weights_norm": "norm_topk_prob",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_group_count": "n_group",
}


def _hybrid_keys(config: Config) -> Keys:
    pattern = _pattern(config)
    trunk = len(pattern)
    config = config.with_values(num_hidden_layers=trunk)
    experts = _has_experts(config)
    drafts = (config.integer("num_nextn_predict_layers") or 0) if experts else 0
    if drafts > 1:
        raise malformed("num_nextn_predict_layers", drafts, "0 or 1")
    attends = frozenset(index for index, kind in enumerate(pattern) if kind in ATTENTION)
    inner = _inner(config)
    keys = hybrid_keys(config, attends, blocks=trunk, inner=inner)
    length = config.need("head_dim", "attention_head_dim")
    keys |= {"attention.key_length": length, "attention.value_length": length}
    width = config.need("moe_intermediate_size") if experts else _feed_forward(config)
    fed = EXPERTS if experts else frozenset({"-"})
    widths = tuple(width if kind in fed else 0 for kind in pattern)
    keys["feed_forward_length"] = widths
    if experts:
        keys |= needed(config, MOE) | copied(config, {"moe_latent_size": "moe_latent_size"})
    return _with_draft(config, keys, widths, width) if drafts else keys


def _feed_forward(config: Config) -> int:
    return config.need("intermediate_size", "n_inner", "hidden_dim")


def _inner(config: Config) -> int:
    width = config.need("mamba_head_dim", "hidden_size", "d_model")
    return config.need("num_heads", "mamba_num_heads") * width


def _with_draft(config: Config, keys: Draft, widths: tuple[int, ...], width: int) -> Draft:
    """Return keys with a draft block behind the trunk, which attends and has experts."""
    trunk = len(widths)
    kv_heads = keys["attention.head_count_kv"]
    alone = kv_heads if isinstance(kv_heads, tuple) else ()
    return keys | {
        "block_count": Either(trunk + 1, (trunk,)),
        "nextn_predict_layers": Either(1, (None,)),
        "feed_forward_length": Either((*widths, width), (widths,)),
        "attention.head_count_kv": Either(
            (*alone, config.need("num_key_value_heads", "n_head_kv")), (alone,)
        ),
    }


def _hybrid_ideal(config: Config) -> CacheLayout:
    pattern = _pattern(config)
    length = config.need("head_dim", "attention_head_dim")
    heads = Full(
        kv_heads=config.need("num_key_value_heads", "n_head_kv"),
        key_length=length,
        value_length=length,
    )
    kernel = config.need("conv_kernel", "d_conv", "mamba_conv_kernel", "mamba_d_conv")
    size = config.need("state_size", "d_state", "state_dim", "ssm_state_size", "mamba_state_dim")
    state = mamba2_state(kernel, _inner(config), size, config.need("n_groups", "mamba_n_groups"))
    return _ideal.layout(_stores(kind, heads, state) for kind in pattern)


def _stores(kind: str, heads: Full, state: Recurrent) -> tuple[Full | Recurrent, ...]:
    if kind in ATTENTION:
        return (heads,)
    return (state,) if kind in STATES else ()


PLAIN = Recipe(
    takes=("NemotronForCausalLM",),
    writes="nemotron",
    defaults={"nemotron": NEMOTRON},
    fills_kv_heads=True,
    fills_head_dim=True,
    needs={"vocab_size": "vocab_size"},
    more=_plain_keys,
)
HYBRID = Converter(
    takes=("NemotronHForCausalLM",), writes=_writes, keys=_hybrid_keys, ideal=_hybrid_ideal
)

ARCHITECTURES = (
    Architecture(names=("nemotron",), implied=plain(NORM), converters=(PLAIN.converter(),)),
    Architecture(
        names=("nemotron_h", "nemotron_h_moe"),
        implied=_nemotron_h,
        converters=(HYBRID,),
        saves=frozenset({"state"}),
    ),
)

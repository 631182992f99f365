"""Step 3.5: windows with heads of their own, experts and draft blocks.

src/models/step35.cpp of llama.cpp build 11434; ``Step35Model`` in conversion/step3.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, windowed
from gguf_audit.arch._base import Draft, base_keys
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._recipe import copied, drafts_of, either, needed
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.layout import CacheLayout, Full

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"


def _types(config: Config, blocks: int) -> tuple[str, ...]:
    """Return one type per block; what the list doesn't name is full attention."""
    types = config.strings("layer_types") or ()
    return (*types, *("full_attention",) * (blocks - len(types)))[:blocks]


def _heads(config: Config, name: str) -> tuple[int, int]:
    """Return how many heads there are on full and on window layers."""
    count = config.need(name)
    other = config.mapping("attention_other_setting") or {}
    return count, Config(other).need(name) if name in other else count


def _limits(config: Config, name: str, blocks: int) -> tuple[float, ...] | None:
    limits = config.items(name)
    if limits is None:
        return None
    numbers = [0.0 if limit is None else to_number(name, limit) for limit in limits]
    return tuple([*numbers, *[0.0] * (blocks - len(numbers))][:blocks])


def _leading_dense(config: Config) -> int:
    listed = config.get("moe_layers_enum")
    if not isinstance(listed, str) or not listed.strip():
        return 0
    parts = [part.strip() for part in listed.split(",")]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise malformed("moe_layers_enum", listed, "numbers with commas")
    return min(int(part) for part in parts)


def _bases(config: Config) -> Config:
    """Return a config whose list of RoPE bases is the two that are written."""
    theta = config.get("rope_theta")
    if not isinstance(theta, list):
        return config
    if len(theta) < 2:
        raise malformed("rope_theta", theta, "a number or two")
    return config.with_values(rope_theta=theta[0], local_rope_theta=theta[1])


def _of(config: Config, drafts: int) -> Draft:
    config = _bases(config)
    keys = base_keys(config, drafts=drafts)
    blocks = config.blocks(drafts=drafts)
    pattern = tuple(kind == "sliding_attention" for kind in _types(config, blocks))
    heads, kv_heads = _heads(config, "num_attention_heads"), _heads(config, "num_attention_groups")
    every, epsilon = config.integer("moe_every_n_layer"), config.number("rms_norm_eps")
    keys |= needed(
        config,
        {
            "attention.sliding_window": "sliding_window",
            "attention.value_length": "head_dim",
            "expert_count": "moe_num_experts",
            "expert_used_count": "moe_top_k",
            EXPERTS: "moe_intermediate_size",
            "expert_shared_feed_forward_length": "share_expert_dim",
        },
    )
    keys |= copied(
        config,
        {
            "expert_weights_scale": "moe_router_scaling_factor",
            "expert_weights_norm": "norm_expert_weight",
        },
    )
    keys |= {
        "attention.head_count": tuple(heads[window] for window in pattern),
        "attention.head_count_kv": tuple(kv_heads[window] for window in pattern),
        "attention.sliding_window_pattern": pattern,
        "leading_dense_block_count": _leading_dense(config),
        "moe_every_n_layers": 1 if every is None else every,
        RMS: 1e-5 if epsilon is None else epsilon,
    }
    for key, name in (
        ("swiglu_clamp_exp", "swiglu_limits"),
        ("swiglu_clamp_shexp", "swiglu_limits_shared"),
    ):
        limits = _limits(config, name, blocks)
        if limits is not None:
            keys[key] = limits
    return keys | {"nextn_predict_layers": drafts} if drafts else keys


def _keys(config: Config) -> Keys:
    drafts = drafts_of(config)
    return either(_of(config, drafts), _of(config, 0))


def _ideal_layout(config: Config) -> CacheLayout:
    length = config.need("head_dim")
    kv_heads = _heads(config, "num_attention_groups")
    full, windowed_ = (
        Full(kv_heads=heads, key_length=length, value_length=length) for heads in kv_heads
    )
    tokens = config.integer("sliding_window")
    sliding = _ideal.sliding(windowed_, tokens) if tokens else windowed_
    types = _types(config, config.blocks())
    return _ideal.layout(sliding if kind == "sliding_attention" else full for kind in types)


CONVERTER = Converter(
    takes=("Step3p5ForCausalLM", "Step3p7ForConditionalGeneration"),
    writes="step35",
    keys=_keys,
    ideal=_ideal_layout,
)
DEFAULTS: Mapping[str, int | float | str] = {
    "expert_gating_func": 2,
    "rope.freq_base_swa": 10000.0,
}

ARCHITECTURES = (
    Architecture(
        names=("step35",),
        implied=windowed(Window(period=None), RMS, EXPERTS),
        converters=(CONVERTER,),
        defaults=DEFAULTS,
        saves=frozenset({"window"}),
    ),
)

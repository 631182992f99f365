"""Architectures with windows that have no module of their own.

``load_arch_hparams`` in src/models/*.cpp of llama.cpp build 11434 and the modules of
conversion. Some periods are in llama.cpp alone: a file without a pattern has the period
below.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, windowed
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._recipe import Recipe, number, rope_share
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
SHARED = "expert_shared_feed_forward_length"
WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"

#: The window is off where the key is absent or 0.
OPTIONAL = Window(when_absent=0, zero_is_none=True, period=4)
#: The window and the pattern must be in the file.
LISTED = Window(period=None)


def _types(config: Config) -> tuple[str, ...]:
    types = config.strings("layer_types")
    if types is None:
        raise malformed("layer_types", None, "an array of strings")
    return types


def _pattern(config: Config) -> tuple[bool, ...]:
    return tuple(kind == "sliding_attention" for kind in _types(config))


def _windows(config: Config) -> CacheLayout:
    types = _ideal.layer_types(config, lambda blocks: ("full_attention",) * blocks)
    return _ideal.windowed(config, types, config.integer("sliding_window"))


def _listed(config: Config, keys: Draft) -> Draft:
    return {**keys, WINDOW: config.need("sliding_window"), PATTERN: _pattern(config)}


def _maple(config: Config, keys: Draft) -> Draft:
    limits = (7.0,) * config.blocks()
    return {**_listed(config, keys), "swiglu_clamp_exp": limits}


def _mellum(config: Config, keys: Draft) -> Draft:
    if config.boolean("use_sliding_window") is False or config.get("sliding_window") is None:
        return keys
    return _listed(config, keys)


def _mellum_ideal(config: Config) -> CacheLayout:
    used = config.boolean("use_sliding_window") is not False
    return _windows(config) if used else _ideal.full(config)


def _parts(config: Config) -> tuple[Mapping[str, Json], Mapping[str, Json] | None]:
    """Return RoPE's parameters on full and on window layers."""
    parameters = rope_parameters(config)
    full, sliding = parameters.get("full_attention"), parameters.get("sliding_attention")
    if not isinstance(full, dict):
        raise malformed("rope_parameters", full, "an object with full_attention")
    return full, sliding if isinstance(sliding, dict) else None


def _share(config: Config, part: Mapping[str, Json]) -> int:
    factor = part.get("partial_rotary_factor", 1.0)
    return int(config.need("head_dim") * to_number("partial_rotary_factor", factor))


def _two_rotations(config: Config, keys: Draft) -> Draft:
    full, sliding = _parts(config)
    keys = {**keys, "rope.dimension_count": _share(config, full)}
    if sliding is not None:
        keys["rope.dimension_count_swa"] = _share(config, sliding)
    return keys


def _laguna(config: Config, keys: Draft) -> Draft:
    blocks = config.blocks()
    heads = config.counts("num_attention_heads_per_layer")
    heads = heads or (config.need("num_attention_heads"),) * blocks
    if len(heads) != blocks:
        name = "num_attention_heads_per_layer"
        raise malformed(name, list(heads)[:8], f"an array of {blocks} counts")
    kinds = config.strings("mlp_layer_types")
    if kinds is None:
        raise malformed("mlp_layer_types", None, "an array of strings")
    dense = next((index for index, kind in enumerate(kinds) if kind != "dense"), len(kinds))
    keys = {
        **_two_rotations(config, keys),
        "attention.head_count": heads,
        "expert_weights_scale": number(config, "moe_routed_scaling_factor"),
        "leading_dense_block_count": dense,
    }
    if window := config.integer("sliding_window"):
        keys[WINDOW] = window
    return keys


def _spark(config: Config, keys: Draft) -> Draft:
    return _two_rotations(config, _listed(config, keys))


def _small(config: Config, keys: Draft) -> Draft:
    softmax = config.boolean("moe_primary_router_apply_softmax")
    keys = {**keys, "expert_gating_func": 1 if softmax else 2}
    width = config.integer("moe_ffn_hidden_size")
    if width is not None:
        keys |= {EXPERTS: width, "feed_forward_length": width}
    window = config.integer("sliding_window_size")
    if any(config.items("sliding_window_layout") or ()) and window:
        keys[WINDOW] = window
    return keys


def _small_ideal(config: Config) -> CacheLayout:
    blocks = config.blocks()
    places = config.counts("sliding_window_layout") or (0,) * blocks
    if len(places) != blocks:
        raise malformed("sliding_window_layout", len(places), f"an array of {blocks} items")
    types = ["sliding_attention" if place else "full_attention" for place in places]
    return _ideal.windowed(config, types, config.integer("sliding_window_size"))


LAGUNA = Recipe(
    takes=("LagunaForCausalLM",),
    writes="laguna",
    needs={
        "vocab_size": "vocab_size",
        EXPERTS: "moe_intermediate_size",
        SHARED: "shared_expert_intermediate_size",
    },
    sets={"expert_weights_norm": True, "expert_gating_func": 2},
    more=_laguna,
    ideal=_windows,
)
MAPLE = Recipe(
    takes=("MapleForCausalLM",),
    writes="maple",
    needs={"vocab_size": "vocab_size", EXPERTS: "moe_intermediate_size"},
    rope=rope_share(1.0),
    more=_maple,
    ideal=_windows,
)
MELLUM = Recipe(
    takes=("MellumForCausalLM",),
    writes="mellum",
    copies={EXPERTS: "moe_intermediate_size"},
    more=_mellum,
    ideal=_mellum_ideal,
)
MUSE = Recipe(
    takes=("MuseGlimmerForConditionalGeneration",),
    writes="muse-glimmer",
    needs={
        "final_logit_softcapping": "final_logit_softcapping",
        "logit_scale": "output_multiplier",
    },
    more=_listed,
    ideal=_windows,
)
SMALL = Recipe(
    takes=("SmallThinkerForCausalLM",),
    writes="smallthinker",
    copies={
        "expert_count": "moe_num_primary_experts",
        "expert_used_count": "moe_num_active_primary_experts",
    },
    more=_small,
    ideal=_small_ideal,
)
SPARK = Recipe(
    takes=("Spark2_5ForCausalLM",),
    writes="spark2_5",
    needs={"vocab_size": "vocab_size"},
    more=_spark,
    ideal=_windows,
)

ARCHITECTURES = (
    Architecture(
        names=("laguna",),
        defaults={"expert_gating_func": 2, "expert_shared_count": 1},
        implied=windowed(
            Window(when_absent=0, zero_is_none=True, period=4, dense_first=True),
            RMS,
            "leading_dense_block_count",
            EXPERTS,
        ),
        converters=(LAGUNA.converter(),),
    ),
    Architecture(
        names=("maple",),
        implied=windowed(LISTED, RMS, EXPERTS, "swiglu_clamp_exp"),
        converters=(MAPLE.converter(),),
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("mellum",),
        implied=windowed(OPTIONAL, RMS, EXPERTS),
        converters=(MELLUM.converter(),),
    ),
    Architecture(
        names=("muse-glimmer",),
        implied=windowed(Window(period=4), RMS, "logit_scale"),
        converters=(MUSE.converter(),),
        defaults={"final_logit_softcapping": 30.0},
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("smallthinker",),
        implied=windowed(
            Window(when_absent=0, zero_is_none=True, fixed=4096, period=4, dense_first=True), RMS
        ),
        converters=(SMALL.converter(),),
    ),
    Architecture(
        names=("spark2_5",),
        implied=windowed(LISTED, RMS),
        converters=(SPARK.converter(),),
        saves=frozenset({"window"}),
    ),
)

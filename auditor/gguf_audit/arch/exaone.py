"""EXAONE 3 to 4.5 and K-EXAONE: windows on three of four layers from 4-32B on.

src/models/exaone.cpp, exaone4.cpp and exaone-moe.cpp of llama.cpp build 11434;
conversion/exaone.py. llama.cpp looks for a window only in models of 64 layers.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, plain, windowed
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._recipe import Recipe, drafts_of, head_length, sizes
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"

#: Exaone4Config of transformers 4.57.6.
EXAONE4: dict[str, Json] = {
    **sizes(102400, 4096, 16384, 32, 32, 32, None, 2048, 1e-5, 1e4),
    "sliding_window": 4096,
    "sliding_window_pattern": 4,
}


def _turned(config: Config) -> int:
    share = rope_parameters(config).get("partial_rotary_factor")
    share = 1.0 if share is None else to_number("partial_rotary_factor", share)
    return int(share * head_length(config))


def _types(config: Config) -> tuple[str, ...] | None:
    """Return each layer's type; ``None`` where no pattern is stated."""
    if config.get("layer_types") is not None:
        return _ideal.layer_types(config, lambda _: ())
    blocks = config.blocks()
    pattern = config.get("sliding_window_pattern")
    if isinstance(pattern, str) and pattern:
        return tuple(
            "sliding_attention" if pattern[index % len(pattern)] == "L" else "full_attention"
            for index in range(blocks)
        )
    if isinstance(pattern, int) and not isinstance(pattern, bool) and pattern > 0:
        return _ideal.periodic(pattern, blocks)
    return None


def _window(config: Config, keys: Draft) -> Draft:
    tokens = config.integer("sliding_window")
    if tokens is None:
        return keys
    keys["attention.sliding_window"] = tokens
    types = _types(config)
    if types is not None:
        pattern = tuple(kind == "sliding_attention" for kind in types)
        keys["attention.sliding_window_pattern"] = pattern
    return keys


def _with_drafts(config: Config, keys: Draft) -> Draft:
    """Return keys with draft blocks that can't be left out."""
    drafts = drafts_of(config)
    if drafts:
        keys |= {"block_count": config.blocks() + drafts, "nextn_predict_layers": drafts}
    return keys


def _more_45(config: Config, keys: Draft) -> Draft:
    return _with_drafts(config, _window(config, keys))


def _more_moe(config: Config, keys: Draft) -> Draft:
    width = config.need("moe_intermediate_size")
    shared = config.need("num_shared_experts")
    dense = config.integer("first_k_dense_replace", "first_last_k_dense_replace")
    keys = _window(config, keys) | {
        EXPERTS: width,
        "expert_shared_count": shared,
        "expert_shared_feed_forward_length": width * shared,
        "leading_dense_block_count": 0 if dense is None else dense,
        "nextn_predict_layers": 0,
    }
    return _with_drafts(config, keys)


def _windows(config: Config) -> CacheLayout:
    tokens = config.integer("sliding_window")
    types = _types(config)
    if tokens is None or types is None:
        return _ideal.full(config)
    return _ideal.windowed(config, types, tokens)


def _activation(config: Config, keys: Draft) -> Draft:
    activation = config.get("activation_function")
    if activation != "silu":
        raise malformed("activation_function", activation, "silu")
    return keys


EXAONE_RECIPE = Recipe(
    takes=("ExaoneForCausalLM",),
    writes="exaone",
    rope=_turned,
    more=_activation,
)
EXAONE4_RECIPE = Recipe(
    takes=("Exaone4ForCausalLM",),
    writes="exaone4",
    defaults={"exaone4": EXAONE4},
    needs={"vocab_size": "vocab_size"},
    more=_window,
    ideal=_windows,
)
EXAONE45_RECIPE = Recipe(
    takes=("Exaone4_5_ForConditionalGeneration",),
    writes="exaone4",
    defaults={"exaone4": EXAONE4},
    needs={"vocab_size": "vocab_size"},
    more=_more_45,
    ideal=_windows,
)
MOE_RECIPE = Recipe(
    takes=("ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"),
    writes="exaone-moe",
    needs={
        "vocab_size": "vocab_size",
        "expert_weights_scale": "routed_scaling_factor",
        "expert_weights_norm": "norm_topk_prob",
    },
    sets={"rope.scaling.type": "none"},
    more=_more_moe,
    ideal=_windows,
)

ARCHITECTURES = (
    Architecture(names=("exaone",), implied=plain(RMS), converters=(EXAONE_RECIPE.converter(),)),
    Architecture(
        names=("exaone4",),
        implied=windowed(Window(when_absent=4096, period=4, only_at=64), RMS),
        converters=(EXAONE4_RECIPE.converter(), EXAONE45_RECIPE.converter()),
    ),
    Architecture(
        names=("exaone-moe",),
        implied=windowed(Window(period=4), RMS, EXPERTS, "expert_gating_func"),
        converters=(MOE_RECIPE.converter(),),
        saves=frozenset({"window"}),
    ),
)

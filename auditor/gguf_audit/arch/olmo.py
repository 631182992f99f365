"""OLMo 1 to 3: windows on three of four layers from 3 on.

src/models/olmo.cpp, olmo2.cpp and olmoe.cpp of llama.cpp build 11434;
conversion/olmo.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, RMS, Window, plain, windowed
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, to_number
from gguf_audit.arch._keys import Either
from gguf_audit.arch._recipe import Recipe, sizes
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

#: OlmoConfig, Olmo2Config, Olmo3Config and OlmoeConfig of transformers 4.57.6.
OLMO2 = sizes(50304, 4096, 11008, 32, 32, None, None, 2048, 1e-5, 1e4)
OLMO3: dict[str, Json] = {**OLMO2, "sliding_window": 4096}
OLMO: dict[str, Json] = {name: value for name, value in OLMO2.items() if name != "rms_norm_eps"}
OLMOE: dict[str, Json] = {
    **sizes(50304, 2048, 2048, 16, 16, None, None, 4096, 1e-5, 1e4),
    "num_experts": 64,
    "num_experts_per_tok": 8,
}


def _types(config: Config) -> tuple[str, ...]:
    return _ideal.layer_types(config, lambda blocks: _ideal.periodic(4, blocks))


def _window(config: Config, keys: Draft) -> Draft:
    if "sliding_window" not in config:
        return keys
    pattern = tuple(kind == "sliding_attention" for kind in _types(config))
    keys |= {
        "attention.sliding_window": config.need("sliding_window"),
        "attention.sliding_window_pattern": pattern,
    }
    theta = rope_parameters(config).get("rope_theta")
    if theta is not None and "rope.freq_base_swa" not in keys:
        # transformers 5 states RoPE's base for each kind of layer
        keys["rope.freq_base_swa"] = Either(None, (to_number("rope_theta", theta),))
    return keys


def _windows(config: Config) -> CacheLayout:
    if "sliding_window" not in config:
        return _ideal.full(config)
    return _ideal.windowed(config, _types(config), config.integer("sliding_window"))


OLMO_RECIPE = Recipe(
    takes=("OLMoForCausalLM", "OlmoForCausalLM"),
    writes="olmo",
    defaults={"olmo": OLMO},
    fills_kv_heads=True,
    copies={"attention.clamp_kqv": "clip_qkv"},
    sets={NORM: 1e-5},
)
OLMO2_RECIPE = Recipe(
    takes=("Olmo2ForCausalLM", "Olmo3ForCausalLM"),
    writes="olmo2",
    defaults={"olmo2": OLMO2, "olmo3": OLMO3},
    fills_kv_heads=True,
    more=_window,
    ideal=_windows,
)
OLMOE_RECIPE = Recipe(
    takes=("OlmoeForCausalLM",),
    writes="olmoe",
    defaults={"olmoe": OLMOE},
    fills_kv_heads=True,
    sets={RMS: 1e-5},
)

ARCHITECTURES = (
    Architecture(names=("olmo",), implied=plain(NORM), converters=(OLMO_RECIPE.converter(),)),
    Architecture(
        names=("olmo2",),
        implied=windowed(Window(when_absent=0, zero_is_none=True, period=4), RMS),
        converters=(OLMO2_RECIPE.converter(),),
    ),
    Architecture(names=("olmoe",), implied=plain(RMS), converters=(OLMOE_RECIPE.converter(),)),
)

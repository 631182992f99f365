"""MiMo-V2: windows of 128 tokens with more heads than the full layers.

src/models/mimo2.cpp of llama.cpp build 11434; ``MimoV2Model`` in conversion/mimo.py. The
three draft blocks of every published checkpoint are written with it.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, windowed
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Either
from gguf_audit.arch._recipe import Recipe, with_drafts
from gguf_audit.arch.architecture import Architecture
from gguf_audit.errors import UnsupportedError
from gguf_audit.layout import CacheLayout, Full, Sliding
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
#: In the converter, not in the config.
DRAFTS = 3


def _pattern(config: Config) -> tuple[int, ...]:
    """Return 1 for every layer with a window, 0 for the rest."""
    pattern = config.counts("hybrid_layer_pattern")
    blocks = config.blocks()
    if pattern is None or len(pattern) != blocks:
        raise malformed("hybrid_layer_pattern", None, f"an array of {blocks} items")
    return pattern


def _more(config: Config, keys: Draft) -> Draft:
    for windowed_name, name in (
        ("swa_head_dim", "head_dim"),
        ("swa_num_attention_heads", "num_attention_heads"),
        ("swa_v_head_dim", "v_head_dim"),
    ):
        if config.need(windowed_name) != config.need(name):
            where = Where(file="config.json", key=windowed_name)
            raise UnsupportedError(f"the converter wants {windowed_name} as {name}", where=where)
    pattern = _pattern(config)
    share = rope_parameters(config).get("partial_rotary_factor")
    epsilon = config.number("layernorm_epsilon")
    keys |= {
        "attention.head_count_kv": _counts(config, pattern),
        "attention.sliding_window_pattern": Either((*pattern, *(1,) * DRAFTS), (pattern,)),
        "rope.dimension_count": int(
            config.need("head_dim") * to_number("partial_rotary_factor", share)
        ),
        RMS: 1e-5 if epsilon is None else epsilon,
    }
    return with_drafts(keys, config, DRAFTS)


def _counts(config: Config, pattern: tuple[int, ...]) -> Either:
    full, windows = config.need("num_key_value_heads"), config.need("swa_num_key_value_heads")
    alone = tuple(windows if kind == 1 else full for kind in pattern)
    return Either((*alone, *(windows,) * DRAFTS), (alone,))


def _windows(config: Config) -> CacheLayout:
    key_length, value_length = config.need("head_dim"), config.need("v_head_dim")
    full = Full(
        kv_heads=config.need("num_key_value_heads"),
        key_length=key_length,
        value_length=value_length,
    )
    window = Sliding(
        kv_heads=config.need("swa_num_key_value_heads"),
        key_length=config.need("swa_head_dim"),
        value_length=config.need("swa_v_head_dim"),
        window_tokens=config.need("sliding_window"),
    )
    return _ideal.layout(window if kind == 1 else full for kind in _pattern(config))


RECIPE = Recipe(
    takes=("MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM"),
    writes="mimo2",
    needs={
        "attention.sliding_window": "sliding_window",
        "attention.value_length": "v_head_dim",
        "expert_count": "n_routed_experts",
        EXPERTS: "moe_intermediate_size",
    },
    copies={"attention.value_scale": "attention_value_scale"},
    more=_more,
    ideal=_windows,
)

ARCHITECTURES = (
    Architecture(
        names=("mimo2",),
        defaults={"rope.freq_base_swa": 10000.0},
        implied=windowed(Window(period=None), RMS, EXPERTS),
        converters=(RECIPE.converter(),),
        saves=frozenset({"window"}),
    ),
)

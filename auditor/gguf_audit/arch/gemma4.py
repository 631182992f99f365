"""Gemma 3n and 4: windows, and late layers that read an earlier layer's cache.

src/models/gemma3n.cpp, gemma4.cpp and gemma4-assistant.cpp of llama.cpp build 11434,
``llama_model::create_memory`` (src/llama-model.cpp); ``Gemma3NModel`` and
``Gemma4Model`` in conversion/gemma.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, attention, check, needs_heads, windows
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse
from gguf_audit.arch._recipe import sizes
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.gemma import gemma3_keys
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full, Layer

__all__ = ["ARCHITECTURES"]

#: Layers of a Gemma 3n with a cache of their own: in llama.cpp, not in the file.
GEMMA3N_OWN = 20

GEMMA3N = Window(period=5)
GEMMA4 = Window(period=None)
WINDOWED = "sliding_attention"


def _gemma3n(hyper: Hyper) -> LlamaModel:
    check(hyper, ("attention.sliding_window", RMS))
    needs_heads(hyper)
    return _shared(hyper, GEMMA3N, GEMMA3N_OWN)


def _gemma4(hyper: Hyper) -> LlamaModel:
    required = (
        "attention.sliding_window_pattern",
        "attention.sliding_window",
        RMS,
        "embedding_length_per_layer_input",
        "attention.key_length_swa",
        "attention.value_length_swa",
    )
    check(hyper, required)
    needs_heads(hyper)
    _check_lengths(hyper)
    shared = hyper.fields.integer("attention.shared_kv_layers") or 0
    return _shared(hyper, GEMMA4, hyper.blocks - shared)


def _check_lengths(hyper: Hyper) -> None:
    """Raise Refused where keys and values differ in length: gemma4.cpp asserts they don't."""
    for name, key, value in (
        ("attention.key_length", hyper.key_length, hyper.value_length),
        ("attention.key_length_swa", hyper.key_length_swa, hyper.value_length_swa),
    ):
        if key != value:
            absent = name if name not in hyper.fields else name.replace("key", "value")
            message = f"keys of {key} elements, values of {value}: both have to be as long"
            raise refuse(hyper.fields, absent, message, aborts=True)


def _shared(hyper: Hyper, window: Window, own: int) -> LlamaModel:
    """Return a model whose first ``own`` layers keep what all of them read.

    A layer beyond them reads the last of its kind: the window layer before the last
    own one, or the last own one, which must be full.
    """
    found = windows(hyper, window)
    tokens, pattern = found if found is not None else (0, (False,) * hyper.blocks)
    layers: list[Layer] = []
    for index in range(hyper.trunk):
        if index < own:
            store = attention(hyper, index, tokens, pattern, window)
            layers.append(Layer(index=index, stores=(store,)))
            continue
        source = own - (2 if pattern[index] else 1)
        if own < 2 or pattern[source] != pattern[index]:
            message = f"block {index} has no layer of its kind to read, of {own} with a cache"
            raise refuse(hyper.fields, "attention.shared_kv_layers", message, aborts=True)
        layers.append(Layer(index=index, shares_with=source))
    return hyper.model(layers, windowed=pattern)


def _assistant(hyper: Hyper) -> LlamaModel:
    required = (
        "attention.sliding_window_pattern",
        "attention.sliding_window",
        RMS,
        "attention.key_length_swa",
        "attention.value_length_swa",
    )
    check(hyper, required)
    needs_heads(hyper)
    layers = [Layer(index=index) for index in range(hyper.trunk)]
    return hyper.model(layers, traits=(Trait.BORROWED,))


#: ``intermediate_size`` of Gemma3nTextConfig.
WIDTHS: list[Json] = [16384 for _ in range(35)]

#: Gemma3nTextConfig of transformers 4.57.6 and Gemma4TextConfig of 5.24.
DEFAULTS: dict[str, dict[str, Json]] = {
    "gemma3n_text": {
        **sizes(262400, 2048, 16384, 35, 8, 2, 256, 32768, 1e-6, 1e6),
        "intermediate_size": WIDTHS,
        "rope_local_base_freq": 10000.0,
        "sliding_window": 512,
        "final_logit_softcapping": 30.0,
        "num_kv_shared_layers": 15,
        "hidden_size_per_layer_input": 256,
        "altup_active_idx": 0,
        "altup_num_inputs": 4,
    },
    "gemma4_text": {
        **sizes(262144, 2304, 9216, 30, 8, 4, 256, 131072, 1e-6, None),
        "sliding_window": 512,
        "num_kv_shared_layers": 0,
        "global_head_dim": 512,
        "hidden_size_per_layer_input": 256,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {
                "rope_type": "proportional",
                "rope_theta": 1000000.0,
                "partial_rotary_factor": 0.25,
            },
        },
    },
}


def _types(config: Config, period: int) -> tuple[str, ...]:
    return _ideal.layer_types(config, lambda blocks: _ideal.periodic(period, blocks))


def _pattern(types: tuple[str, ...]) -> tuple[bool, ...]:
    return tuple(kind == WINDOWED for kind in types)


def _gemma3n_keys(config: Config) -> Keys:
    config = _sparse(config)
    keys = gemma3_keys(config)
    keys |= {
        "altup.active_idx": config.need("altup_active_idx"),
        "altup.num_inputs": config.need("altup_num_inputs"),
        "embedding_length_per_layer_input": config.need("hidden_size_per_layer_input"),
        "attention.shared_kv_layers": config.need("num_kv_shared_layers"),
        "activation_sparsity_scale": _sparsity(config),
        "attention.sliding_window_pattern": _pattern(_types(config, 5)),
    }
    return keys


def _sparse(config: Config) -> Config:
    """Return the config with what Gemma3nTextConfig computes out of other values."""
    blocks = config.blocks()
    values: dict[str, Json] = {}
    width = config.get("intermediate_size")
    if width is None or isinstance(width, int):
        widths: list[Json] = [config.need("intermediate_size") for _ in range(blocks)]
        values["intermediate_size"] = widths
    if config.get("activation_sparsity_pattern") is None:
        sparse = min(10, blocks)
        shares: list[Json] = [0.95 if index < sparse else 0.0 for index in range(blocks)]
        values["activation_sparsity_pattern"] = shares
    return config.with_values(**values)


def _sparsity(config: Config) -> tuple[float, ...]:
    """Return how many standard deviations cut off the wanted share of activations."""
    # costs more to import than the rest of this module
    from statistics import NormalDist

    normal = NormalDist()
    scales: list[float] = []
    for share in config.items("activation_sparsity_pattern") or []:
        value = to_number("activation_sparsity_pattern", share)
        if not 0 <= value < 1:
            raise malformed("activation_sparsity_pattern", share, "a share below 1")
        scales.append(normal.inv_cdf(value) if value > 0 else float("-inf"))
    return tuple(scales)


def _gemma4_keys(config: Config) -> Keys:
    keys = gemma3_keys(config)
    types = _types(config, 6)
    shared = config.need("num_kv_shared_layers")
    full, windowed = _head_lengths(config, types)
    keys |= {
        "attention.shared_kv_layers": shared,
        "embedding_length_per_layer_input": config.integer("hidden_size_per_layer_input") or 0,
        "attention.sliding_window_pattern": _pattern(types),
        "attention.key_length": full,
        "attention.value_length": full,
        "attention.key_length_swa": windowed,
        "attention.value_length_swa": windowed,
        "rope.dimension_count": full,
        "rope.dimension_count_swa": _turned(config, windowed),
    }
    experts = config.integer("expert_intermediate_size", "moe_intermediate_size")
    if experts is not None:
        keys["expert_feed_forward_length"] = experts
    if config.boolean("use_double_wide_mlp"):
        width = config.need("intermediate_size")
        own = len(types) - shared
        keys["feed_forward_length"] = tuple(
            width if index < own else 2 * width for index in range(len(types))
        )
    return keys | _kv_heads(config, types)


def _turned(config: Config, length: int) -> int:
    factor = rope_parameters(config).get("partial_rotary_factor", 1.0)
    return int(length * to_number("partial_rotary_factor", factor))


def _head_lengths(config: Config, types: tuple[str, ...]) -> tuple[int, int]:
    """Return a head's length on full and on window layers."""
    full = config.integer("global_head_dim")
    if full is None:
        full = _of_full_layers(config, types, "head_dim")
    if full is None:
        raise malformed("global_head_dim", None, "a whole number")
    return full, config.need("head_dim")


def _of_full_layers(config: Config, types: tuple[str, ...], name: str) -> int | None:
    """Return what ``per_layer_config`` says of the first full layer it lists."""
    listed: Mapping[str, Json] = config.mapping("per_layer_config") or {}
    for key, values in listed.items():
        index = int(key) if key.isdecimal() and len(key) <= 9 else len(types)
        if index >= len(types) or types[index] != "full_attention":
            continue
        if isinstance(values, dict) and name in values:
            value = values[name]
            if isinstance(value, bool) or not isinstance(value, int):
                raise malformed(name, value, "a whole number")
            return value
    return None


def _kv_heads(config: Config, types: tuple[str, ...]) -> Draft:
    full = _full_kv_heads(config, types)
    windowed = config.integer("num_key_value_heads")
    if full is None or windowed is None:
        return {}
    heads = tuple(windowed if kind == WINDOWED else full for kind in types)
    return {"attention.head_count_kv": heads}


def _full_kv_heads(config: Config, types: tuple[str, ...]) -> int | None:
    full = config.integer("num_global_key_value_heads")
    return _of_full_layers(config, types, "num_key_value_heads") if full is None else full


def _layers(
    types: tuple[str, ...], own: int, full: Full, windowed: Full, tokens: int
) -> CacheLayout:
    """Return layers the last of which read the last of their kind before ``own``."""
    layers: list[Layer] = []
    for index, kind in enumerate(types):
        if index < own:
            store = _ideal.sliding(windowed, tokens) if kind == WINDOWED else full
            layers.append(Layer(index=index, stores=(store,)))
            continue
        source = next((i for i in reversed(range(own)) if types[i] == kind), None)
        layers.append(Layer(index=index, shares_with=source))
    return CacheLayout(layers=tuple(layers))


def _gemma3n_ideal(config: Config) -> CacheLayout:
    types = _types(config, 5)
    heads = _ideal.heads(config)
    own = len(types) - config.need("num_kv_shared_layers")
    return _layers(types, own, heads, heads, config.need("sliding_window"))


def _gemma4_ideal(config: Config) -> CacheLayout:
    types = _types(config, 6)
    length, windowed = _head_lengths(config, types)
    kv_heads = config.need("num_key_value_heads")
    full_heads = _full_kv_heads(config, types)
    own = len(types) - config.need("num_kv_shared_layers")
    return _layers(
        types,
        own,
        Full(
            kv_heads=kv_heads if full_heads is None else full_heads,
            key_length=length,
            value_length=length,
        ),
        Full(kv_heads=kv_heads, key_length=windowed, value_length=windowed),
        config.need("sliding_window"),
    )


GEMMA3N_CONVERTER = Converter(
    takes=("Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"),
    writes="gemma3n",
    defaults=DEFAULTS,
    keys=_gemma3n_keys,
    ideal=_gemma3n_ideal,
)
GEMMA4_CONVERTER = Converter(
    takes=(
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Gemma4UnifiedForConditionalGeneration",
    ),
    writes="gemma4",
    defaults=DEFAULTS,
    keys=_gemma4_keys,
    ideal=_gemma4_ideal,
)

ARCHITECTURES = (
    Architecture(
        names=("gemma3n",),
        implied=_gemma3n,
        converters=(GEMMA3N_CONVERTER,),
        defaults={"rope.freq_base_swa": 10000.0},
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("gemma4",),
        implied=_gemma4,
        converters=(GEMMA4_CONVERTER,),
        defaults={"rope.freq_base_swa": 10000.0, "final_logit_softcapping": 30.0},
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("gemma4-assistant",),
        implied=_assistant,
        defaults={"rope.freq_base_swa": 10000.0},
        verified=False,
    ),
)

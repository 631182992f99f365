"""Models that run the same blocks several times, with a cache for every round.

src/models/nanbeige.cpp, hrm-text.cpp and granite-switch.cpp of llama.cpp build 11434;
conversion/nanbeige.py, hrm_text.py and granite.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, full_layers, needs_heads
from gguf_audit.arch._base import Draft, base_keys
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import MAX_LAYERS, Hyper, LlamaModel, refuse, require
from gguf_audit.arch._recipe import Recipe, number, rope_whole
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.granite import granite_keys
from gguf_audit.layout import CacheLayout
from gguf_audit.limits import LIMITS

__all__ = ["ARCHITECTURES"]


def _nanbeige(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    needs_heads(hyper)
    loops = hyper.fields.integer("num_loops")
    loops = 1 if loops is None else loops
    if not 0 < loops * hyper.trunk <= MAX_LAYERS:
        message = f"{loops} loops over {hyper.trunk} blocks, llama.cpp asserts at most {MAX_LAYERS}"
        raise refuse(hyper.fields, "num_loops", message, aborts=True)
    if loops == 1:
        return full_layers(hyper)
    blocks = loops * hyper.trunk
    return full_layers(
        replace(
            hyper,
            blocks=blocks,
            trunk=blocks - (hyper.blocks - hyper.trunk),
            heads=hyper.heads[: hyper.trunk] * loops,
            kv_heads=hyper.kv_heads[: hyper.trunk] * loops,
            feed_forward=hyper.feed_forward[: hyper.trunk] * loops,
        )
    )


def _hrm_text(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    needs_heads(hyper)
    stack = require(hyper.fields, "hrm.layers_per_stack")
    high = require(hyper.fields, "hrm.h_cycles")
    low = require(hyper.fields, "hrm.l_cycles")
    slots = stack * high * (low + 1)
    if low == 0 or slots == 0 or slots != hyper.trunk:
        message = f"{hyper.trunk} blocks for {slots} slots, llama.cpp asserts as many"
        raise refuse(hyper.fields, "block_count", message, aborts=True)
    return full_layers(hyper)


def _granite_switch(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, "logit_scale", "adapters.count", "adapters.lora_rank"))
    count = require(hyper.fields, "adapters.count")
    require(hyper.fields, "adapters.lora_rank")
    needs_heads(hyper)
    for name in ("adapters.token_ids_activate", "adapters.token_ids_substitute"):
        items = hyper.fields.items(name)
        if items is None or len(items) != count:
            message = f"{hyper.fields.key(name)} doesn't name one token per adapter, {count}"
            raise refuse(hyper.fields, name, message)
    # one more layer of one head, behind the last: it routes, and takes the place of
    # draft blocks, of which there are none
    return full_layers(
        replace(
            hyper,
            blocks=hyper.trunk + 1,
            trunk=hyper.trunk + 1,
            heads=(*hyper.heads[: hyper.trunk], 1),
            kv_heads=(*hyper.kv_heads[: hyper.trunk], 1),
            feed_forward=(*hyper.feed_forward[: hyper.trunk], 0),
        )
    )


def _loops(config: Config) -> int:
    return config.integer("num_loops") or 1


def _looped(config: Config, keys: Draft) -> Draft:
    skips = config.boolean("skip_loop_final_norm") or False
    return {**keys, "num_loops": _loops(config), "skip_loop_final_norm": skips}


def _rounds(config: Config, name: str, blocks: int) -> Config:
    """Return a config with as many blocks as there are rounds of them."""
    if blocks > LIMITS.blocks:
        raise malformed(name, blocks, f"few enough rounds for {LIMITS.blocks} blocks")
    return config.with_values(n_layers=blocks)


def _slots(config: Config) -> Config:
    blocks = config.integer("num_layers_per_stack") or config.blocks()
    high, low = config.need("H_cycles"), config.need("L_cycles")
    return _rounds(config, "H_cycles", blocks * high * (low + 1))


def _hrm_keys(config: Config) -> Keys:
    prefix = config.get("prefix_lm")
    return {
        **base_keys(_slots(config)),
        "rope.dimension_count": rope_whole(config),
        "embedding_scale": number(config, "embedding_scale"),
        "hrm.layers_per_stack": config.integer("num_layers_per_stack") or config.blocks(),
        "hrm.h_cycles": config.need("H_cycles"),
        "hrm.l_cycles": config.need("L_cycles"),
        "hrm.prefix_lm": bool(prefix),
    }


def _switched(config: Config) -> Config:
    """Return a config without the last block, which only routes."""
    if config.blocks() < 2:
        raise malformed("num_hidden_layers", config.blocks(), "2 or more")
    return config.with_values(n_layers=config.blocks() - 1)


def _switch_keys(config: Config) -> Keys:
    keys = granite_keys(_switched(config))
    if not config.integer("num_local_experts"):
        keys["expert_used_count"] = 0
    gain = config.number("control_token_gain")
    return {
        **keys,
        "adapters.count": config.need("num_adapters"),
        "adapters.lora_rank": config.need("max_lora_rank"),
        "adapters.token_ids_activate": _tokens(config, "adapter_token_ids"),
        "adapters.token_ids_substitute": _tokens(config, "adapter_substitute_token_ids"),
        "adapters.router_gain": 15.0 if gain is None else gain,
    }


def _tokens(config: Config, name: str) -> tuple[int, ...]:
    tokens = config.counts(name)
    if tokens is None:
        raise malformed(name, None, "an array of tokens")
    return tokens


def _nanbeige_ideal(config: Config) -> CacheLayout:
    return _ideal.full(_rounds(config, "num_loops", config.blocks() * _loops(config)))


NANBEIGE = Recipe(
    takes=("NanbeigeForCausalLM",),
    writes="nanbeige",
    needs={"vocab_size": "vocab_size"},
    rope=rope_whole,
    more=_looped,
    ideal=_nanbeige_ideal,
)
HRM = Converter(
    takes=("HrmTextForCausalLM",),
    writes="hrm_text",
    keys=_hrm_keys,
    ideal=lambda config: _ideal.full(_slots(config)),
)
SWITCH = Converter(
    takes=("GraniteSwitchForCausalLM",),
    writes="graniteswitch",
    keys=_switch_keys,
    ideal=lambda config: _ideal.full(_switched(config)),
)

ARCHITECTURES = (
    Architecture(names=("nanbeige",), implied=_nanbeige, converters=(NANBEIGE.converter(),)),
    Architecture(names=("hrm_text",), implied=_hrm_text, converters=(HRM,)),
    Architecture(
        names=("graniteswitch",),
        implied=_granite_switch,
        converters=(SWITCH,),
        defaults={"rope.scaling.finetuned": True},
    ),
)

"""Models that run the same blocks several times, with a cache for every round.

src/models/nanbeige.cpp, hrm-text.cpp and granite-switch.cpp of llama.cpp build 11434.
"""

from __future__ import annotations

from dataclasses import replace

from gguf_audit.arch._attention import RMS, check, full_layers, needs_heads
from gguf_audit.arch._model import MAX_LAYERS, Hyper, LlamaModel, refuse, require
from gguf_audit.arch.architecture import Architecture

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


ARCHITECTURES = (
    Architecture(names=("nanbeige",), implied=_nanbeige),
    Architecture(names=("hrm_text",), implied=_hrm_text),
    Architecture(names=("graniteswitch",), implied=_granite_switch),
)

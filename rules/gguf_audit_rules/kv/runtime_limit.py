"""llama.cpp keeps more than the architecture needs, whatever the file says.

## What it does
Compares what a right conversion makes llama.cpp keep with the checkpoint's own need, and
notes windows and latents that the runtime doesn't implement. The file is not to blame, so
this is never more than an info.

## Why it matters
The memory is spent all the same: Mistral 7B v0.1 has a window of 4096 tokens and keeps
every token, MiniCPM3 unpacks its latent to twenty times the size. Another engine may not.
Without the window, layers also look further back than in training: answers to prompts beyond
it get worse.

## Fix
None in the file. Plan for the memory, or use an engine that implements it.

## Authority
llama.cpp b11434, `src/llama-model.cpp: create_memory` and the architecture's
`load_arch_hparams`; the checkpoint's `sliding_window` and `kv_lora_rank`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.layout import CacheLayout, Chunked, Full, Latent, Layer, Sliding
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import attention, named


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for windows, and one for latents, that the runtime unpacks."""
    del settings
    expected, ideal = conversion.expected, conversion.ideal
    if not isinstance(expected, CacheLayout) or not isinstance(ideal, CacheLayout):
        return
    trained = conversion.model.gguf.integer(conversion.model.fields.key("context_length")) or 0
    several = list(zip(expected.layers, ideal.layers, strict=False))
    for what, saves in (("sliding window", _windowed), ("latent (MLA)", _latent)):
        spent = [
            kept.index
            for kept, needed in several
            if isinstance(attention(kept), Full) and saves(needed, trained)
        ]
        if spent:
            yield Hit(
                message=f"the architecture has a {what} on {named(spent, len(several))}, "
                "llama.cpp keeps every token unpacked there whatever the file says",
                where=Where(layer=spent[0]),
                expected=what,
                actual="full attention",
                level=Severity.INFO,
                consequences=_beyond(expected=ideal, layers=spent) if saves is _windowed else (),
            )


def _beyond(*, expected: CacheLayout, layers: list[int]) -> tuple[str, ...]:
    """Say what a window that isn't there does to long prompts."""
    stores = [attention(layer) for layer in expected.layers if layer.index in layers]
    windows = [each.window_tokens for each in stores if isinstance(each, Sliding | Chunked)]
    return (f"prompts beyond {min(windows)} tokens are read further back than in training",)


def _windowed(layer: Layer, trained: int) -> bool:
    store = attention(layer)
    return isinstance(store, Sliding | Chunked) and store.window_tokens < trained


def _latent(layer: Layer, trained: int) -> bool:
    del trained
    return isinstance(attention(layer), Latent)


RULE = Rule(
    id="KV109",
    name="runtime-limit",
    levels=(Severity.INFO,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    authority="llama.cpp b11434 src/llama-model.cpp create_memory; config.json sliding_window, "
    "kv_lora_rank",
)

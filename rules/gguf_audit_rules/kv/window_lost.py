"""The file makes the runtime keep every token where the model has a sliding window.

## What it does
Compares the layers that keep only a window of tokens in a right conversion with what
llama.cpp makes of this file's metadata, and reports the file if none is left. A window
as long as the training context is none.

## Why it matters
llama.cpp says nothing: it allocates a full cache for every layer, five times the memory
for Gemma 3 at 32K tokens, and the layers attend to tokens that they were never trained to
see. Output past the window gets worse.

## Fix
Reconvert with a current converter. `gguf-new-metadata` and `gguf-set-metadata` can't add
the key.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_swa_pattern` and the architecture's
`load_arch_hparams` (an absent window means no window); the checkpoint's `sliding_window`
and `layer_types`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import cost, named, pairs, windows

KEY = "attention.sliding_window"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if every window of a right conversion is gone."""
    del settings
    compared = windows(conversion)
    wanted = {layer.index: layer.expected for layer in compared if layer.expected is not None}
    if not wanted or any(layer.implied is not None for layer in compared):
        return
    fields = conversion.model.fields
    found = arch.effective(fields, KEY)
    sizes = sorted(set(wanted.values()))
    size = " or ".join(str(tokens) for tokens in sizes)
    absent = KEY not in fields
    total = len(list(pairs(conversion)))
    yield Hit(
        message=(
            f"needs a {size}-token window on {named(list(wanted), total)}, "
            f"{fields.key(KEY)} is {'absent' if absent else 'not in effect'}{cost(conversion)}"
        ),
        where=Where(key=fields.key(KEY)),
        expected=sizes[0] if len(sizes) == 1 else sizes,
        actual=None if found is None else found.value,
        origin=Origin.RUNTIME_DEFAULT if found is None else found.origin,
        level=Severity.ERROR,
        repair=Reconvert(hint="no metadata tool can add this key"),
        consequences=tuple(_local_rope_base(conversion)),
    )


def _local_rope_base(conversion: Conversion) -> Iterator[str]:
    """Windowed layers with a RoPE base of their own lose that as well."""
    if isinstance(conversion.expected_fields, Absent):
        return
    wanted = arch.effective(conversion.expected_fields, "rope.freq_base_swa")
    globally = arch.effective(conversion.model.fields, "rope.freq_base")
    if wanted is not None and globally is not None and wanted.value != globally.value:
        yield (
            f"these layers also rotate with the global RoPE base {globally.value:.10g} "
            f"instead of their own {wanted.value:.10g}"
        )


RULE = Rule(
    id="KV103",
    name="window-lost",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    authority="llama.cpp b11434 src/llama-model.cpp load_swa_pattern; config.json sliding_window",
)

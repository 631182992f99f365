"""The RoPE base in effect is not the model's.

## What it does
Compares the base frequency that llama.cpp uses (the key, else 10000) with the one of a
right conversion, for the global layers and, where the model has them, the windowed ones.

## Why it matters
Positions are rotated by other angles than in training. Short prompts look fine, long ones
turn into fluent nonsense, and nothing is printed.

## Fix
A key that is present can be set in place with `gguf-set-metadata`; an absent one needs a
new conversion. Until then `--rope-freq-base` helps at run time.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (`rope_freq_base_train`, default
10000); the checkpoint's `rope_theta` or `rope_parameters`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Fields
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    OnConversion,
    Outcome,
    Reconvert,
    Rule,
    SetKey,
    Severity,
)
from gguf_audit.where import Where
from gguf_audit_rules.ctx._compare import same
from gguf_audit_rules.kv._layers import window

GLOBAL = "rope.freq_base"
WINDOWED = "rope.freq_base_swa"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each base that differs."""
    del settings
    wanted = conversion.expected_fields
    if isinstance(wanted, Absent) or not arch.rotates(conversion.model.fields.architecture):
        return
    yield from _base(conversion.model.fields, wanted, GLOBAL, "")
    # Without windowed layers nothing uses their base; their loss is KV103's cause.
    # Without a key of their own they follow the global one.
    own = WINDOWED in conversion.model.fields or WINDOWED in wanted
    actual, expected = conversion.model.implied, conversion.expected
    if own and _has_window(actual, conversion.model.fields) and _has_window(expected, wanted):
        yield from _base(conversion.model.fields, wanted, WINDOWED, " on the windowed layers")


def _base(fields: Fields, wanted: Fields, key: str, layers: str) -> Iterator[Outcome]:
    expected, found = arch.effective(wanted, key), arch.effective(fields, key)
    if expected is None or found is None or same(expected.value, found.value):
        return
    stored = found.value if key in fields else None
    if any(same(stored, other) for other in wanted.alternatives(key)):
        return
    if not isinstance(expected.value, int | float) or isinstance(found.value, str | tuple):
        return
    full_key = fields.key(key)
    present = key in fields
    state = f"is {found.value:.10g}" if present else f"is absent, so it is {found.value:.10g}"
    yield Hit(
        message=f"needs a RoPE base of {expected.value:.10g}{layers}, {full_key} {state}",
        where=Where(key=full_key),
        expected=expected.value,
        actual=found.value,
        origin=found.origin,
        level=Severity.ERROR,
        repair=(
            SetKey(key=full_key, value=expected.value, present=True)
            if present
            else Reconvert(hint="until then run with --rope-freq-base")
        ),
    )


def _has_window(layout: object, fields: Fields) -> bool:
    if not isinstance(layout, CacheLayout):
        return False
    if not any(layer.stores for layer in layout.layers):
        # An encoder keeps nothing, and has a window all the same.
        stated = arch.effective(fields, "attention.sliding_window")
        return stated is not None and stated.value != 0
    return any(window(layer) is not None for layer in layout.layers)


RULE = Rule(
    id="CTX002",
    name="rope-base-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    defers_to=("ARCH007",),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams rope_freq_base_train; "
    "config.json rope_theta",
)

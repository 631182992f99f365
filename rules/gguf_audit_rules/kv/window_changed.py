"""The sliding window has another size, or other layers have it.

## What it does
Compares, layer by layer, the window that llama.cpp applies to this file with the one of a
right conversion: its size in tokens, and which layers have it.

## Why it matters
A window of the wrong size makes layers see more or fewer tokens than in training, and a
shifted pattern exchanges local and global layers. Short prompts look right, long ones
don't, and the cache has another size.

## Fix
A key that is present can be set in place with `gguf-set-metadata`; a wrong pattern needs a
new conversion.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_swa_pattern` (array, scalar period, or the
architecture's own period); the checkpoint's `sliding_window` and `layer_types`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.layout import Layer
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
from gguf_audit_rules.kv._layers import Pair, attention, cost, named, pairs, windowed

SIZE = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield at most one hit for the size and one for the pattern."""
    del settings
    compared = list(pairs(conversion))
    if not any(windowed(pair.implied) for pair in compared):
        return  # None at all is window-lost's cause.
    yield from _size(conversion, compared)
    yield from _pattern(conversion, compared)


def _size(conversion: Conversion, compared: list[Pair]) -> Iterator[Outcome]:
    fields = conversion.model.fields
    differing = [
        (pair.index, ours.window_tokens, theirs.window_tokens)
        for pair in compared
        if (ours := windowed(pair.implied)) and (theirs := windowed(pair.expected))
        if ours.window_tokens != theirs.window_tokens
    ]
    if not differing:
        return
    found = arch.effective(fields, SIZE)
    first, actual, expected = differing[0]
    layers = [index for index, _, _ in differing]
    yield Hit(
        message=(
            f"needs a {expected}-token window on {named(layers, len(compared))}, "
            f"{fields.key(SIZE)} makes it {actual}: {cost(conversion)}"
        ),
        where=Where(key=fields.key(SIZE), layer=first),
        expected=expected,
        actual=actual,
        origin=None if found is None else found.origin,
        level=Severity.ERROR,
        repair=(
            SetKey(key=fields.key(SIZE), value=expected, present=True)
            if SIZE in fields
            else Reconvert()
        ),
    )


def _pattern(conversion: Conversion, compared: list[Pair]) -> Iterator[Outcome]:
    fields = conversion.model.fields
    shifted = [
        pair.index
        for pair in compared
        if attention(pair.implied) and attention(pair.expected)
        if bool(windowed(pair.implied)) != bool(windowed(pair.expected))
    ]
    if not shifted:
        return
    yield Hit(
        message=(
            f"needs the window on {_strip(pair.expected for pair in compared)}, this file has it "
            f"on {_strip(pair.implied for pair in compared)}, other than it should be on "
            f"{named(shifted, len(compared))}: {cost(conversion)}"
        ),
        where=Where(key=fields.key(PATTERN), layer=shifted[0]),
        expected=[bool(windowed(pair.expected)) for pair in compared],
        actual=[bool(windowed(pair.implied)) for pair in compared],
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _strip(layers: Iterator[Layer]) -> str:
    """Draw the layers: ``S`` with a window, ``F`` without; ``SSSSSFSSSSSF``."""
    return "".join("S" if windowed(layer) else "F" if attention(layer) else "-" for layer in layers)


RULE = Rule(
    id="KV104",
    name="window-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    authority="llama.cpp b11434 src/llama-model.cpp load_swa_pattern; config.json sliding_window, "
    "layer_types",
)

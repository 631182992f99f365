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

from collections.abc import Iterator, Mapping

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
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
from gguf_audit_rules.kv._layers import Windows, cost, named, pairs, windows

SIZE = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield at most one hit for the size and one for the pattern."""
    del settings
    compared = windows(conversion)
    if all(layer.implied is None for layer in compared):
        return  # None at all is window-lost's cause.
    yield from _size(conversion, compared)
    yield from _pattern(conversion, compared)


def _size(conversion: Conversion, compared: list[Windows]) -> Iterator[Outcome]:
    fields = conversion.model.fields
    differing = [
        (layer.index, layer.implied, layer.expected)
        for layer in compared
        if layer.implied is not None and layer.expected is not None
        if layer.implied != layer.expected
    ]
    if not differing:
        return
    found = arch.effective(fields, SIZE)
    first, actual, expected = differing[0]
    layers = named([index for index, _, _ in differing], _total(conversion))
    yield Hit(
        message=(
            f"needs a {expected}-token window on {layers}, "
            f"{fields.key(SIZE)} makes it {actual}{cost(conversion)}"
        ),
        where=Where(key=fields.key(SIZE), layer=first),
        expected=expected,
        actual=actual,
        origin=Origin.RUNTIME_DEFAULT if found is None else found.origin,
        level=Severity.ERROR,
        repair=(
            SetKey(key=fields.key(SIZE), value=expected, present=True)
            if SIZE in fields
            else Reconvert()
        ),
    )


def _pattern(conversion: Conversion, compared: list[Windows]) -> Iterator[Outcome]:
    fields = conversion.model.fields
    shifted = [
        layer.index for layer in compared if (layer.implied is None) != (layer.expected is None)
    ]
    if not shifted:
        return
    total = _total(conversion)
    expected = {layer.index: layer.expected for layer in compared}
    implied = {layer.index: layer.implied for layer in compared}
    yield Hit(
        message=(
            f"needs the window on {_strip(expected, total)}, this file has it "
            f"on {_strip(implied, total)}, other than it should be on "
            f"{named(shifted, total)}{cost(conversion)}"
        ),
        where=Where(key=fields.key(PATTERN), layer=shifted[0]),
        expected=[expected.get(index) is not None for index in range(total)],
        actual=[implied.get(index) is not None for index in range(total)],
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _total(conversion: Conversion) -> int:
    return len(list(pairs(conversion)))


def _strip(layers: Mapping[int, int | None], total: int) -> str:
    """Draw the layers: ``S`` with a window, ``F`` without; ``SSSSSFSSSSSF``."""
    return "".join(
        "-" if index not in layers else "F" if layers[index] is None else "S"
        for index in range(total)
    )


RULE = Rule(
    id="KV104",
    name="window-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    authority="llama.cpp b11434 src/llama-model.cpp load_swa_pattern; config.json sliding_window, "
    "layer_types",
)

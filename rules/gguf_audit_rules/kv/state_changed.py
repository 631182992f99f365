"""A recurrent layer keeps another state than the model has.

## What it does
Compares the recurrent state of each layer (convolution and state-space parts) with that of
a right conversion: which layers have one, and how many elements.

## Why it matters
A recurrent layer without its state keeps keys and values of every token instead, and one
with a state of another size doesn't run the model that was trained. Most such files are
refused on load; where they load, the memory and the output are wrong.

## Fix
Reconvert: the keys belong together with the tensors' shapes.

## Authority
llama.cpp b11434, `src/llama-hparams.cpp: n_embd_r, n_embd_s`; the architecture's
`load_arch_hparams` for which layers are recurrent.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import cost, named, pairs, state


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all layers whose state differs."""
    del settings
    compared = list(pairs(conversion))
    differing: list[tuple[int, int, int]] = []
    for pair in compared:
        ours, theirs = state(pair.implied), state(pair.expected)
        kept = 0 if ours is None else ours.elements
        wanted = 0 if theirs is None else theirs.elements
        if kept != wanted:
            differing.append((pair.index, kept, wanted))
    if not differing:
        return
    first, kept, wanted = differing[0]
    layers = named([index for index, _, _ in differing], len(compared))
    yield Hit(
        message=(
            f"needs a recurrent state of {wanted:,} elements on {layers}, this file makes it "
            f"{kept:,}{cost(conversion)}"
        ),
        where=Where(layer=first),
        expected=wanted,
        actual=kept,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="KV105",
    name="state-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    authority="llama.cpp b11434 src/llama-hparams.cpp n_embd_r, n_embd_s",
)

"""Another part of each head is rotated than in the model.

## What it does
Compares what RoPE turns: the number of elements of a head (the key, else the whole head),
the same on windowed layers, the sections of multimodal RoPE, and Granite's switch for RoPE
at all.

## Why it matters
Models with partial rotation (`partial_rotary_factor`) rotate a quarter or a half of each
head. Without the key llama.cpp rotates all of it; every position is wrong from the first
token on, and nothing is printed.

## Fix
A key that is present can be set in place with `gguf-set-metadata`; an absent one needs a new
conversion.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (`n_rot_full`, `n_rot_swa`,
`rope_sections`), `src/models/granite.cpp` (`rope_finetuned`); `partial_rotary_factor` and
`mrope_section` of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Fields
from gguf_audit.rule import (
    Hit,
    Need,
    OnConversion,
    Outcome,
    Rule,
    Severity,
)
from gguf_audit.where import Where
from gguf_audit_rules.arch._values import Difference, differences, repair_of, said

#: Key -> what it says, for messages.
SAYS = {
    "rope.dimension_count": "elements of each head rotated",
    "rope.dimension_count_swa": "elements of each head rotated on windowed layers",
    "rope.dimension_sections": "rotary sections",
    "rope.scaling.finetuned": "as the switch for RoPE",
}


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key that makes the rotation another one."""
    del settings
    fields, wanted = conversion.model.fields, conversion.expected_fields
    if not isinstance(wanted, Fields) or not arch.rotates(fields.architecture):
        return
    for found in differences(conversion):
        # A default that follows another key is that key's cause.
        stated = found.name in fields or found.name in wanted
        if found.name in SAYS and found.read and stated:
            yield _hit(fields, wanted, found)


def _hit(fields: Fields, wanted: Fields, found: Difference) -> Hit:
    key = fields.key(found.name)
    state = "is" if found.name in fields else "is absent, so it is"
    return Hit(
        message=f"needs {said(found.expected)} {SAYS[found.name]}, {key} {state} "
        f"{said(found.actual)}",
        where=Where(key=key),
        expected=found.expected,
        actual=found.actual,
        origin=found.origin,
        level=Severity.ERROR,
        repair=repair_of(found, fields, wanted),
    )


RULE = Rule(
    id="CTX004",
    name="rotation-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    defers_to=("ARCH007", "CTX002"),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams n_rot_full; config.json "
    "partial_rotary_factor",
)

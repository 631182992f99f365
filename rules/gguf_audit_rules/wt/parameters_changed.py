"""A tensor has more or fewer parameters than the checkpoint's.

## What it does
The converter transposes, stacks, splits and reorders, but what goes in comes out: compares
the number of parameters of each tensor, or of the tensors that one becomes, with the
checkpoint's. Rows of the vocabulary and of positions may be cut or padded. Checkpoints that
pack several parameters into one element aren't compared.

## Why it matters
Metadata and tensors may agree with each other and with the config, and still be another
model's: a pruned one, a slice, a checkpoint whose config belongs to another.

## Fix
Name the right reference, or reconvert.

## Authority
llama.cpp b11434, `conversion/*.py: modify_tensors`; the shapes in the safetensors headers.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import compared, listed


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all tensors whose parameters don't add up."""
    del settings
    found = compared(conversion)
    if isinstance(found, Absent):
        return  # tensor-lost has said why
    _, comparison = found
    if not comparison.changed:
        return
    first = comparison.changed[0]
    names = [change.tensor.name for change in comparison.changed]
    yield Hit(
        message=(
            f"needs {_shown(first.expected)} in {listed(first.group.names)} as in "
            f"{first.group.source} of the checkpoint, has {_shown(first.actual)}"
            + (f"; so it is with {listed(names[1:])}" if names[1:] else "")
        ),
        where=Where(
            tensor=first.tensor.name, layer=first.group.layer, offset=first.tensor.info_offset
        ),
        expected=_listed(first.expected),
        actual=_listed(first.actual),
        unit="parameter" if isinstance(first.expected, int) else None,
        level=Severity.ERROR,
        repair=Reconvert(hint="or name the right reference"),
    )


def _shown(sizes: tuple[int, ...] | int) -> str:
    if isinstance(sizes, int):
        return f"{sizes:,} parameters"
    return " x ".join(str(size) for size in sizes)


def _listed(sizes: tuple[int, ...] | int) -> list[int] | int:
    return sizes if isinstance(sizes, int) else list(sizes)


RULE = Rule(
    id="WT006",
    name="parameters-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    defers_to=("ARCH002", "ARCH003", "ARCH006", "KV106", "WT003"),
    authority="llama.cpp b11434 conversion/*.py modify_tensors; safetensors headers",
)

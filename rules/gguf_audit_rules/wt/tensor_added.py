"""The file has a tensor that doesn't come from the checkpoint.

## What it does
Looks for tensors that no tensor of the checkpoint becomes, that the converter doesn't
compute from the config, and that aren't scales of quantized ones. A copy of a tied
embedding as the output projection is only noted.

## Why it matters
Biases or norms that the model doesn't have change what it computes: the file is of another
model, of a merge, or was edited.

## Fix
Name the right reference, or reconvert.

## Authority
llama.cpp b11434, `conversion/*.py: modify_tensors, generate_extra_tensors`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, NoEvidence, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import compared, listed

OUTPUT = "output.weight"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all that was added, one for a copy of the embedding."""
    del settings
    found = compared(conversion)
    if isinstance(found, Absent):
        return  # tensor-lost has said why
    expected, comparison = found
    if expected.unknown:
        yield NoEvidence(f"what becomes of {len(expected.unknown)} tensors isn't known")
        return
    file = conversion.model.gguf.tensors
    added = [name for name in comparison.added if name != OUTPUT]
    if added:
        tensor = file[added[0]]
        yield Hit(
            message=f"has {listed(added)}, which no tensor of the checkpoint becomes",
            where=Where(tensor=tensor.name, offset=tensor.info_offset),
            expected=[],
            actual=added,
            level=Severity.WARNING,
            repair=Reconvert(hint="or name the right reference"),
        )
    if OUTPUT in comparison.added:
        tensor = file[OUTPUT]
        yield Hit(
            message=f"has {OUTPUT} ({tensor.elements} parameters), which the checkpoint ties to "
            "the token embedding: right if it is a copy, and as many bytes too many",
            where=Where(tensor=OUTPUT, offset=tensor.info_offset),
            expected=[],
            actual=[OUTPUT],
            level=Severity.INFO,
        )


RULE = Rule(
    id="WT005",
    name="tensor-added",
    levels=(Severity.WARNING, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    defers_to=("ARCH002", "ARCH003", "WT002"),
    authority="llama.cpp b11434 conversion/*.py modify_tensors, generate_extra_tensors",
)

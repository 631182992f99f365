"""An importance matrix is of another model.

## What it does
Given the model as reference, a GGUF file or its checkpoint, compares each entry with the
tensor of its name: one number for each column, one matrix for each expert. Tensors without an
entry are no fault: the embedding and the output have none.

## Why it matters
llama-quantize stops where the sizes differ, and quantizes without the matrix where a name
isn't found: it prints that nobody reads, and the file is as good as one without.

## Fix
Compute the importance matrix on the model that is to be quantized.

## Authority
llama.cpp b11434, `src/llama-quant.cpp: llama_model_quantize_impl`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, NoEvidence, OnCompanion, Outcome, Replace, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg._base import at, base_of, sizes_differ
from gguf_audit_rules.wt._tensors import listed

SUMS = ".in_sum2"


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for entries of other sizes, one for entries of no tensor."""
    del settings
    entries = {
        name.removesuffix(SUMS): tensor
        for name, tensor in companion.gguf.tensors.items()
        if name.endswith(SUMS)
    }
    base = base_of(companion, entries)
    if isinstance(base, Absent):
        yield NoEvidence(f"the model isn't known: {base.reason}")
        return
    wrong: list[str] = []
    for name, tensor in entries.items():
        shape = base.shape(name)
        if shape is None:
            continue
        columns, matrices = tensor.shape[0], tensor.elements // max(tensor.shape[0], 1)
        if sizes_differ(at(shape, 0), columns) or sizes_differ(at(shape, 2), matrices):
            wrong.append(name)
    if wrong:
        yield _hit(f"needs the sizes of the model's tensors, others for {listed(wrong)}", wrong[0])
        return
    absent = [name for name in entries if base.has(name) is False and "nextn" not in name]
    if absent:
        yield _hit(
            f"the model has no {listed(absent)}, of which there are entries",
            absent[0],
            level=Severity.WARNING,
        )


def _hit(message: str, name: str, level: Severity = Severity.ERROR) -> Hit:
    return Hit(message=message, where=Where(tensor=name + SUMS), level=level, repair=Replace())


RULE = Rule(
    id="PKG046",
    name="imatrix-base-mismatch",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("imatrix",)),
    needs=frozenset({Need.REFERENCE}),
    authority="llama.cpp b11434 src/llama-quant.cpp llama_model_quantize_impl",
)

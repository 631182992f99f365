"""An importance matrix holds something below zero.

## What it does
Looks at the sums of squares (`in_sum2`) and the numbers of tokens (`counts`) of an importance
matrix on this machine, the smallest first, up to 1 MiB each and 16 MiB together; `-v` tells how
many were. A count of zero is right: an expert that no token came to.

## Why it matters
llama-quantize takes negative sums for weights, and with them the worst values for the best. An
entry with a negative count it treats as one that was never used, and says nothing.

## Fix
Compute the importance matrix again with llama-imatrix.

## Authority
llama.cpp b11434, `tools/quantize/quantize.cpp: load_imatrix`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.gguf import Gguf, Tensor
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, NoEvidence, OnCompanion, Outcome, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.imatrix_incomplete import AGAIN, COUNTS, SUMS
from gguf_audit_rules.wt._tensors import NAMED, listed, small


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all entries, and what wasn't looked at."""
    del settings
    gguf = companion.gguf
    entries = [each for name, each in gguf.tensors.items() if name.endswith((SUMS, COUNTS))]
    looked = 0
    wrong: list[tuple[Tensor, int, float]] = []
    for tensor in small(entries):
        found = gguf.negative(tensor)
        if isinstance(found, Absent):
            continue  # imatrix-incomplete and tensor-data-truncated say why
        looked += 1
        if found is not None:
            wrong.append((tensor, *found))
    if wrong:
        yield _hit(gguf, wrong)
    if looked < len(entries):
        yield NoEvidence(
            f"only {looked:,} of {len(entries):,} sums and counts were looked at, the small ones",
            kind="not-applicable",
        )


def _hit(gguf: Gguf, wrong: list[tuple[Tensor, int, float]]) -> Hit:
    tensor, index, value = wrong[0]
    others = [each.name for each, _, _ in wrong[1:]]
    more = f"; so has {listed(others)}" if others else ""
    file = gguf.files[tensor.file]
    return Hit(
        message=f"needs nothing below zero, {tensor.name} has {value:g}, value {index:,}{more}",
        where=Where(
            file=file.name,
            tensor=tensor.name,
            offset=file.data_offset + tensor.offset + 4 * index,
        ),
        expected="0 or more",
        actual=value,
        level=Severity.ERROR,
        repair=AGAIN,
        also=tuple(each.name for each, _, _ in wrong[:NAMED]),
    )


RULE = Rule(
    id="PKG050",
    name="imatrix-negative",
    levels=(Severity.ERROR,),
    check=OnCompanion(check, kinds=("imatrix",)),
    needs=frozenset({Need.VALUES}),
    authority="llama.cpp b11434 tools/quantize/quantize.cpp load_imatrix",
)

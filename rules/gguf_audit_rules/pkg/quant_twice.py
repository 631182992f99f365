"""Two files of a folder are the same quant of the same model.

## What it does
Looks among the files that claim to be one model for two whose names end in the same
quantization, whatever the case of their letters. Dynamic quants (`UD-`) are others than plain ones.

## Why it matters
One of them is a leftover: an older conversion, a copy, a merged file beside its shards. Which
one people get is chance.

## Fix
Keep one.

## Authority
GGUF naming convention (ggml `docs/gguf.md`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import SetSubject, Settings
from gguf_audit.naming import Label, label_of
from gguf_audit.rule import Hit, OnSet, Outcome, Rule, Severity
from gguf_audit.where import Where


def check(subject: SetSubject, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit for each quantization that several files have."""
    del settings
    files: dict[Label, list[str]] = {}
    for member in subject.members:
        label = label_of(member.name)
        if label is not None:
            files.setdefault(label, []).append(member.name)
    for label, names in files.items():
        if len(names) > 1:
            yield Hit(
                message=f"needs one file of {label.text}, has {len(names)}: {', '.join(names[:5])}",
                where=Where(file=names[-1]),
                expected=1,
                actual=len(names),
                unit="file",
                level=Severity.INFO,
            )


RULE = Rule(
    id="PKG008",
    name="quant-twice",
    levels=(Severity.INFO,),
    check=OnSet(check),
    authority="ggml docs/gguf.md GGUF naming convention",
)

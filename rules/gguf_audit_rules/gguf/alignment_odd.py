"""The alignment is less than the format allows.

## What it does
Looks for a `general.alignment` of 1, 2 or 4. Other powers of two are right; what is none is
refused when the file is read.

## Why it matters
The format wants a multiple of 8. llama.cpp takes any power of two and computes with tensors
where they are; engines that map them as they stand read floats from odd addresses, which is
slow on some processors and impossible on others.

## Fix
Reconvert: `gguf-new-metadata` keeps the alignment of what it reads.

## Authority
ggml, docs/gguf.md (`general.alignment`: "must be a multiple of 8"); llama.cpp b11434,
`ggml/src/gguf.cpp: gguf_init_from_reader`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

KEY = "general.alignment"
LEAST = 8


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file with such an alignment."""
    del settings
    for file in model.gguf.files:
        if file.alignment < LEAST:
            yield Hit(
                message=f"needs a multiple of {LEAST}, {KEY} is {file.alignment}",
                where=Where(file=file.name, key=KEY),
                expected=f"a multiple of {LEAST}",
                actual=file.alignment,
                origin=Origin.KEY,
                level=Severity.WARNING,
                repair=Reconvert(),
            )


RULE = Rule(
    id="GGUF011",
    name="alignment-odd",
    levels=(Severity.WARNING,),
    check=OnModel(check),
    any_kind=True,
    authority="ggml docs/gguf.md general.alignment",
)

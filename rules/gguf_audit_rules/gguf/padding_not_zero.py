"""The padding between the header and the data isn't zeros.

## What it does
Looks at the bytes from the end of the last tensor info to the first byte of tensor data, which
only round the header up to `general.alignment`. Where they begin something known (an archive, a
program, a pickle) it is an error, else a warning.

## Why it matters
No engine reads them and every writer leaves zeros there. With a large alignment they are room
for a program that rides along unseen.

## Fix
Fetch the file again, and compare its checksum with the published one; or write it anew with
`gguf-new-metadata`.

## Authority
GGUF specification of ggml, docs/gguf.md, `gguf_file_t` (`_padding`) and `general.alignment`;
llama.cpp b11434, `ggml/src/gguf.cpp: gguf_write_to_file`, which pads with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Replace, Rule, Severity
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file whose header is padded with something."""
    del settings
    for file in model.gguf.files:
        filling = file.filling
        if filling is None:
            continue
        yield Hit(
            message=f"needs zeros up to the data at byte {file.data_offset:,}, {file.name} has "
            f"{filling.size_bytes:,} bytes, {filling.kind or 'of no kind we know'}, from byte "
            f"{filling.offset:,} on",
            where=Where(file=file.name, offset=filling.offset),
            expected=0,
            actual=filling.size_bytes,
            unit="byte",
            level=Severity.WARNING if filling.kind is None else Severity.ERROR,
            repair=Replace(),
        )


RULE = Rule(
    id="GGUF009",
    name="padding-not-zero",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    any_kind=True,
    authority="ggml docs/gguf.md gguf_file_t; llama.cpp b11434 ggml/src/gguf.cpp "
    "gguf_write_to_file",
)

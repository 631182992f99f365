"""The file goes on behind its last tensor.

## What it does
Compares where the last tensor's data ends, padded to `general.alignment`, with the size of
the file. A file without tensors ends with its header. Where the last tensor's size isn't
known, nothing is said. Both ends of what lies behind are looked at: bytes that aren't zero are
an error, named where they begin something known (an archive, a program, a pickle), zeros a
warning.

## Why it matters
No converter writes anything there and no engine reads it: an archive, a program or the rest
of another download may ride along unseen, and the file's checksum is nobody's.

## Fix
Fetch the file again, and compare its checksum with the published one.

## Authority
llama.cpp b11434, `ggml/src/gguf.cpp: gguf_init_from_reader` (size of the data section) and
`gguf_write_to_file`; gguf-py `GGUFWriter.write_tensors_to_file`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Replace, Rule, Severity
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file that is longer than its header says."""
    del settings
    for file in model.gguf.files:
        tail = file.tail
        if tail is None:
            continue
        behind = "its last tensor" if file.tensors else "its header"
        what = "zeros" if tail.empty else f"bytes, {tail.kind or 'of no kind we know'},"
        yield Hit(
            message=f"needs to end at byte {tail.offset:,} with {behind}, {file.name} has "
            f"{tail.size_bytes:,} {what} more",
            where=Where(file=file.name, offset=tail.offset),
            expected=tail.offset,
            actual=file.size_bytes,
            unit="byte",
            level=Severity.WARNING if tail.empty else Severity.ERROR,
            repair=Replace(),
        )


RULE = Rule(
    id="GGUF005",
    name="trailing-bytes",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    # Data that is somewhere else, or smaller, leaves its old place behind.
    defers_to=("GGUF002", "GGUF004", "WT003"),
    any_kind=True,
    authority="llama.cpp b11434 ggml/src/gguf.cpp gguf_init_from_reader, gguf_write_to_file",
)

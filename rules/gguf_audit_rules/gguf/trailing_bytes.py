"""The file goes on behind its last tensor.

## What it does
Compares where the last tensor's data ends, padded to `general.alignment`, with the size of
the file. A file without tensors ends with its header. Where the last tensor's size isn't
known, nothing is said.

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
from gguf_audit.extents import padded
from gguf_audit.rule import Hit, OnModel, Outcome, Replace, Rule, Severity
from gguf_audit.subject import FileFacts
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file that is longer than its header says."""
    del settings
    for file in model.gguf.files:
        end = _end(file)
        if end is None or file.size_bytes <= end:
            continue
        behind = "its last tensor" if file.tensors else "its header"
        yield Hit(
            message=f"needs to end at byte {end:,} with {behind}, {file.name} has "
            f"{file.size_bytes - end:,} bytes more",
            where=Where(file=file.name, offset=end),
            expected=end,
            actual=file.size_bytes,
            level=Severity.WARNING,
            repair=Replace(),
        )


def _end(file: FileFacts) -> int | None:
    """Return where a file ends at the latest, its last padding included."""
    known = [each.offset + each.size_bytes for each in file.tensors if each.size_bytes is not None]
    end = max(known, default=0)
    if any(each.size_bytes is None and each.offset >= end for each in file.tensors):
        return None
    return padded(file.data_offset + end, file.alignment)


RULE = Rule(
    id="GGUF005",
    name="trailing-bytes",
    levels=(Severity.WARNING,),
    check=OnModel(check),
    # Data that is somewhere else, or smaller, leaves its old place behind.
    defers_to=("GGUF002", "GGUF004", "WT003"),
    authority="llama.cpp b11434 ggml/src/gguf.cpp gguf_init_from_reader, gguf_write_to_file",
)

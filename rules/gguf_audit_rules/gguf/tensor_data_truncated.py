"""Tensor data reaches beyond the end of the file.

## What it does
Compares where each tensor's data ends, by shape and type, with the size of the file. A file
that ends with its header has none of them.

## Why it matters
An interrupted download, a full disk, or one part of a file that was cut. llama.cpp refuses the
file; other tools read garbage.

## Fix
Fetch or copy the file again, and compare sizes. Parts (`model.gguf.part1of2`) have to be
concatenated. Where only the header was fetched on purpose, `--ignore GGUF001`.

## Authority
llama.cpp b11434, `src/llama-model-loader.h: llama_tensor_weight` (`data is not within the
file bounds`); `ggml/src/gguf.cpp: gguf_init_from_reader`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.extents import Extent, extents
from gguf_audit.gguf import FileFacts
from gguf_audit.naming import part_of
from gguf_audit.rule import Advice, Hit, OnModel, Outcome, Replace, Rule, Severity
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file that ends too early."""
    del settings
    for file in model.gguf.files:
        placed = extents(file)
        beyond = [extent for extent in placed if _end(extent) > file.size_bytes]
        if not beyond:
            continue
        yield _hit(file, beyond)


def _end(extent: Extent) -> int:
    """Where data ends at the least: an unknown type has one byte or more."""
    return extent.end if extent.end is not None else extent.start + 1


def _hit(file: FileFacts, beyond: list[Extent]) -> Hit:
    part = part_of(file.name)
    first = min(beyond, key=lambda extent: extent.start)
    needed = max(_end(extent) for extent in beyond)
    return Hit(
        message=(
            f"needs {needed:,} bytes, {file.name} has {file.size_bytes:,}: "
            f"{needed - file.size_bytes:,} are missing, in {len(beyond)} of "
            f"{len(file.tensors)} tensors from {first.tensor.name} on"
        ),
        where=Where(file=file.name, tensor=first.tensor.name, offset=file.size_bytes),
        expected=needed,
        actual=file.size_bytes,
        unit="byte",
        level=Severity.ERROR,
        repair=Replace() if part is None else Advice(text=part.advice),
    )


RULE = Rule(
    id="GGUF001",
    name="tensor-data-truncated",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    any_kind=True,
    authority="llama.cpp b11434 src/llama-model-loader.h llama_tensor_weight",
)

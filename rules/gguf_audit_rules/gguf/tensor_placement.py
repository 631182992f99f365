"""Tensor data overlaps, leaves a hole, is out of order or misaligned.

## What it does
Recomputes where each tensor's data has to begin: behind the one before it in the header,
padded to `general.alignment`.

## Why it matters
llama.cpp accepts no other offset. Overlapping data means that one tensor's bytes are read
as another's; a hole can hide bytes that nobody looks at.

## Fix
Reconvert, or fetch the file again if its checksum differs from the published one.

## Authority
llama.cpp b11434, `ggml/src/gguf.cpp: gguf_init_from_reader` (`tensor has offset X,
expected Y`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.extents import padded
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.subject import FileFacts, Tensor
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file, on the first tensor that is out of place."""
    del settings
    for file in model.gguf.files:
        yield from _file(file)


def _file(file: FileFacts) -> Iterator[Outcome]:
    expected: int | None = 0
    for tensor in file.tensors:
        if expected is None:
            # Behind data of unknown size any aligned offset may be right.
            if tensor.offset % file.alignment:
                yield _hit(file, tensor, None, "isn't a multiple of the alignment")
                return
        elif tensor.offset != expected:
            yield _hit(file, tensor, expected, _wrong(file, tensor, expected))
            return
        size = tensor.size_bytes
        expected = None if size is None else padded(tensor.offset + size, file.alignment)


def _wrong(file: FileFacts, tensor: Tensor, expected: int) -> str:
    if tensor.offset % file.alignment:
        return f"isn't a multiple of the alignment, {file.alignment}"
    if tensor.offset < expected:
        return "overlaps the data before it"
    return "leaves a hole behind the data before it"


def _hit(file: FileFacts, tensor: Tensor, expected: int | None, wrong: str) -> Hit:
    wanted = "an aligned offset" if expected is None else f"offset {expected}"
    return Hit(
        message=f"needs {wanted} for the data of {tensor.name}, "
        f"it has offset {tensor.offset}, which {wrong}",
        where=Where(file=file.name, tensor=tensor.name, offset=tensor.info_offset),
        expected=expected,
        actual=tensor.offset,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="GGUF002",
    name="tensor-placement",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    authority="llama.cpp b11434 ggml/src/gguf.cpp gguf_init_from_reader",
)

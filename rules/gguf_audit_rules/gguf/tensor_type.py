"""A tensor has a type that llama.cpp can't read.

## What it does
Looks each ggml type up. Types of ik_llama.cpp are known and only noted; types that were
removed from llama.cpp are errors; of a type that nobody knows not even the size can be
told, so the audit of the file stays partial. Rows must be a whole number of blocks.

## Why it matters
llama.cpp refuses the whole file for one such tensor.

## Fix
Use the engine that is named, or requantize from the original.

## Authority
llama.cpp b11434, `ggml/include/ggml.h: ggml_type` and `ggml/src/gguf.cpp`; ik_llama.cpp
`ggml/include/ggml.h`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import Tensor
from gguf_audit.rule import Hit, NoEvidence, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

SHOWN = 5


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each type that llama.cpp doesn't read, one for ragged rows."""
    del settings
    tensors = [tensor for file in model.gguf.files for tensor in file.tensors]
    counts = Counter(tensor.type.id for tensor in tensors)
    told: set[int] = set()
    unknown: list[Tensor] = []
    ragged: Tensor | None = None
    for tensor in tensors:
        type_ = tensor.type
        if type_.block_elements and tensor.size_bytes is None:
            ragged = ragged or tensor
        if type_.id in told:
            continue
        told.add(type_.id)
        where = Where(
            file=model.gguf.files[tensor.file].name, tensor=tensor.name, offset=tensor.info_offset
        )
        if type_.needs is not None:
            yield Hit(
                message=f"needs {type_.needs}: {counts[type_.id]} of {len(tensors)} tensors have "
                f"its type {type_.name}, the first is {tensor.name}",
                where=where,
                expected="a type of llama.cpp",
                actual=type_.name,
                level=Severity.INFO,
            )
        elif type_.removed:
            yield Hit(
                message=f"needs a type that llama.cpp reads, {tensor.name} has {type_.name} "
                f"(id {type_.id}), which was removed",
                where=where,
                expected="a type of llama.cpp",
                actual=type_.name,
                level=Severity.ERROR,
                repair=Reconvert(),
            )
        elif type_.block_elements is None:
            unknown.append(tensor)
    if unknown:
        ids = [str(tensor.type.id) for tensor in unknown]
        more = ", ..." if len(ids) > SHOWN else ""
        yield NoEvidence(
            f"{sum(counts[tensor.type.id] for tensor in unknown)} tensors have a type that nobody "
            f"here knows, id {', '.join(ids[:SHOWN])}{more}; the first is {unknown[0].name}",
            kind="limit",
        )
    if ragged is not None:
        yield _ragged(model, ragged)


def _ragged(model: Model, tensor: Tensor) -> Hit:
    row = tensor.shape[0] if tensor.shape else 1
    return Hit(
        message=f"needs rows of a multiple of {tensor.type.block_elements} elements for "
        f"{tensor.type.name}, {tensor.name} has rows of {row}",
        where=Where(
            file=model.gguf.files[tensor.file].name, tensor=tensor.name, offset=tensor.info_offset
        ),
        expected=f"a multiple of {tensor.type.block_elements} elements",
        actual=row,
        unit="element",
        level=Severity.ERROR,
        repair=Reconvert(),
        also=(tensor.name,),
    )


RULE = Rule(
    id="GGUF004",
    name="tensor-type",
    levels=(Severity.ERROR, Severity.INFO),
    check=OnModel(check),
    any_kind=True,
    authority="llama.cpp b11434 ggml/include/ggml.h ggml_type; ik_llama.cpp ggml/include/ggml.h",
)

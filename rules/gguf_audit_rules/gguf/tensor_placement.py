"""Tensor data overlaps, leaves a hole, is out of order or misaligned.

## What it does
Recomputes where each tensor's data has to begin: behind the one before it in the header,
padded to `general.alignment`. One finding for each kind of fault: behind a hole everything
is in another place, and still right behind what is before it.

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

import enum
from collections.abc import Iterator

from msgspec import Struct

from gguf_audit.evidence import Model, Settings
from gguf_audit.extents import padded
from gguf_audit.gguf import FileFacts, Tensor
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where


class Fault(enum.Enum):
    """How data is misplaced, the dangerous kind first."""

    OVERLAP = "overlaps the data of another tensor"
    MISALIGNED = "isn't a multiple of the alignment"
    HOLE = "leaves a hole behind the data before it"
    ORDER = "is out of order"


class _Misplaced(Struct, frozen=True):
    """A tensor whose data isn't where it should be."""

    tensor: Tensor
    #: ``None`` behind data of unknown size.
    expected: int | None
    fault: Fault


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file and kind of fault, on the first such tensor."""
    del settings
    for file in model.gguf.files:
        found = list(_misplaced(file))
        for faults in ((Fault.OVERLAP,), (Fault.MISALIGNED,), (Fault.HOLE, Fault.ORDER)):
            if alike := [each for each in found if each.fault in faults]:
                yield _hit(file, alike[0], len(alike))


def _misplaced(file: FileFacts) -> Iterator[_Misplaced]:
    """Yield each tensor that isn't right behind the one before it, wherever that is."""
    overlapping = _overlapping(file)
    expected: int | None = 0
    # Where data has to begin if the tensor before it alone is misplaced.
    otherwise: int | None = None
    reach = 0
    for tensor in file.tensors:
        overlaps = tensor.info_offset in overlapping
        misplaced = tensor.offset not in (expected, otherwise)
        if expected is None:
            # Behind data of unknown size any aligned and free offset may be right.
            overlaps = overlaps and tensor.offset < reach
            misplaced = overlaps or tensor.offset % file.alignment != 0
        if misplaced:
            yield _Misplaced(tensor, expected, _fault(file, tensor, expected, overlaps=overlaps))
        size = tensor.size_bytes
        behind = expected if misplaced else None
        expected = None if size is None else padded(tensor.offset + size, file.alignment)
        otherwise = (
            None if size is None or behind is None else padded(behind + size, file.alignment)
        )
        reach = max(reach, tensor.offset + (size or 0))


def _fault(file: FileFacts, tensor: Tensor, expected: int | None, *, overlaps: bool) -> Fault:
    if overlaps:
        return Fault.OVERLAP
    if tensor.offset % file.alignment:
        return Fault.MISALIGNED
    return Fault.HOLE if expected is None or tensor.offset > expected else Fault.ORDER


def _overlapping(file: FileFacts) -> set[int]:
    """Return the tensors that share a byte with another one, by where their infos are."""
    placed = sorted(
        (tensor.offset, tensor.offset + tensor.size_bytes, tensor.info_offset)
        for tensor in file.tensors
        if tensor.size_bytes
    )
    found: set[int] = set()
    reach = -1
    for index, (start, end, info) in enumerate(placed):
        follows = placed[index + 1][0] if index + 1 < len(placed) else end
        if start < reach or follows < end:
            found.add(info)
        reach = max(reach, end)
    return found


def _hit(file: FileFacts, first: _Misplaced, count: int) -> Hit:
    tensor, expected = first.tensor, first.expected
    wanted = "a free, aligned offset" if expected is None else f"offset {expected}"
    alignment = f", {file.alignment}" if first.fault is Fault.MISALIGNED else ""
    more = "" if count == 1 else f"; {count} tensors are misplaced so"
    return Hit(
        message=f"needs {wanted} for the data of {tensor.name}, it has offset "
        f"{tensor.offset}, which {first.fault.value}{alignment}{more}",
        where=Where(file=file.name, tensor=tensor.name, offset=tensor.info_offset),
        expected=expected,
        actual=tensor.offset,
        unit="byte",
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="GGUF002",
    name="tensor-placement",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    any_kind=True,
    authority="llama.cpp b11434 ggml/src/gguf.cpp gguf_init_from_reader",
)

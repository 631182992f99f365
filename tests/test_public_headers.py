"""Headers that people have made up to hurt whoever reads them: refused, or told, at once."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine_subjects import ALL, KEYS, TENSORS
from gguf_audit.engine import audit_targets
from gguf_audit.mandate import Mandate
from gguf_audit.testing import TensorSpec, build_gguf, write_gguf
from public_reports import rows


def begun(tensors: int, keys: int, rest: bytes) -> bytes:
    """Return a header that claims so many tensors and keys, and goes on like that."""
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + rest + bytes(4096)


def named(name: bytes, *numbers: tuple[str, int]) -> bytes:
    """Return a name with its length, and numbers behind it."""
    tail = b"".join(struct.pack(f"<{form}", number) for form, number in numbers)
    return struct.pack("<Q", len(name)) + name + tail


def aligned(power: int) -> bytes:
    return build_gguf({**KEYS, "general.alignment": 1 << power}, TENSORS, data="none")


def shaped(*shape: int) -> bytes:
    return build_gguf(KEYS, [*TENSORS, TensorSpec("w", shape)], data="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A file that isn't read to its end, and why."""

    about: str
    rows: str = ""
    content: bytes
    refused: str


ARRAYS = ("I", 9), *((("I", 9), ("Q", 1)) * 1000)
CASES = [
    Case(
        about="a text as long as a gigabyte",
        rows="sec-004",
        content=begun(0, 1, named(b"k", ("I", 8), ("Q", 1 << 30))),
        refused="malformed",
    ),
    Case(
        about="an array of a thousand million texts",
        content=begun(0, 1, named(b"k", ("I", 9), ("I", 8), ("Q", 1 << 30))),
        refused="malformed",
    ),
    Case(about="an alignment of a gigabyte", content=aligned(30), refused="limit"),
    Case(
        about="an alignment that rounding up overflows",
        rows="sec-005",
        content=aligned(31),
        refused="limit",
    ),
    Case(
        about="a million dimensions",
        rows="sec-007",
        content=begun(1, 0, named(b"t", ("I", 10**6))),
        refused="malformed",
    ),
    Case(
        about="more dimensions than a fixed array holds",
        rows="sec-010",
        content=begun(1, 0, named(b"t", ("I", 9))),
        refused="malformed",
    ),
    Case(
        about="a key without a name",
        rows="sec-008",
        content=build_gguf({**KEYS, "": 1}, TENSORS),
        refused="malformed",
    ),
    Case(
        about="arrays of arrays, a thousand deep",
        rows="sec-009",
        content=begun(0, 1, named(b"k", *ARRAYS)),
        refused="limit",
    ),
    Case(
        about="a value of a type that there is not",
        content=begun(0, 1, named(b"k", ("I", 13))),
        refused="malformed",
    ),
    Case(
        about="items of a type that there is not",
        content=begun(0, 1, named(b"k", ("I", 9), ("I", 13), ("Q", 1))),
        refused="malformed",
    ),
    Case(
        about="more keys than a disk could hold",
        rows="sec-011",
        content=begun(0, 1 << 40, b""),
        refused="malformed",
    ),
    Case(
        about="a size that 64 bits don't hold",
        rows="sec-012",
        content=shaped((1 << 64) - 1, 2),
        refused="malformed",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_refused(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(case.content)
    begin = time.process_time()
    report = audit_targets([str(file)], Mandate(rules=ALL))
    assert time.process_time() - begin < 10
    codes = [error.code for subject in report.subjects for error in subject.errors]
    assert (codes, report.exit_code()) == ([case.refused], 3)


@rows("sec-003")
@pytest.mark.parametrize("shape", [(256, (1 << 54) + 1), (1 << 20, (1 << 42) + 1)])
def test_a_size_in_bytes_that_wraps_to_a_small_one(tmp_path: Path, shape: tuple[int, int]) -> None:
    # 2^64 bytes and a few: as a number of 64 bits only the few, which are in the file.
    few = 4 * shape[0] * shape[1] - (1 << 64)
    file = tmp_path / "model.gguf"
    header = build_gguf(KEYS, [TensorSpec("w", shape)], data="none")
    file.write_bytes(header + bytes(-len(header) % 32 + few))
    [subject] = audit_targets([str(file)], Mandate(rules=ALL)).subjects
    assert "GGUF001" in [found.rule for found in subject.findings]


def test_a_dimension_of_zero_divides_nothing(tmp_path: Path) -> None:
    # llama.cpp takes a tensor without elements; that no model has this one is told.
    file = write_gguf(tmp_path / "model.gguf", KEYS, [*TENSORS, TensorSpec("w", (64, 0))])
    [subject] = audit_targets([str(file)], Mandate(rules=ALL)).subjects
    assert [found.rule for found in subject.findings] == ["WT002"]

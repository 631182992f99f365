"""The cache table of a report: what the file makes llama.cpp keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gguf_audit.report.style import Detail, Paint, Style, plural
from gguf_audit.report.wording import models
from gguf_audit.verdict import BytesAt, Report, SubjectReport

__all__ = ["CacheTable", "aligned", "cache_tables", "mebibytes", "named", "tables", "title"]

_MIB = 1 << 20
#: Names of files shown in a title before the rest is counted.
_NAMES = 3


class CacheTable(NamedTuple):
    """Subjects that keep the same, and what that is: columns of cells, their heads first."""

    subjects: list[SubjectReport]
    columns: list[list[str]]
    #: What the reader should not miss, "" for nothing.
    remark: str


def tables(report: Report, *, everything: bool = False) -> Iterator[CacheTable]:
    """Yield one table for all subjects with the same rows.

    Among several models only those are shown whose file differs from a right
    conversion, unless everything is wanted.
    """
    folded: dict[tuple[BytesAt, ...], list[SubjectReport]] = {}
    alone = models(report.subjects) == 1 or everything
    for subject in report.subjects:
        if subject.cache is None or not subject.cache.bytes:
            continue
        if alone or any(_differs(row) for row in subject.cache.bytes):
            folded.setdefault(subject.cache.bytes, []).append(subject)
    for rows, subjects in folded.items():
        yield CacheTable(subjects, _columns(rows, everything=everything), _remark(rows))


def title(report: Report) -> str:
    """Return what the numbers of the tables are."""
    build = report.runtimes.get("llama.cpp", "")
    return " ".join(f"KV cache in MiB: llama.cpp {build}".split()) + ", one sequence, f16"


def cache_tables(report: Report, style: Style) -> Iterator[list[str]]:
    """Yield the lines of each table for a reader of text."""
    for table in tables(report, everything=style.detail is Detail.EVERYTHING):
        name = "" if models(report.subjects) == 1 else f" ({named(table.subjects, style)})"
        lines = [f"  {style.paint(title(report) + name, Paint.STRONG)}"]
        lines += aligned(table.columns, style)
        if table.remark:
            lines.append(style.paint(f"    {table.remark}", Paint.DOUBTFUL))
        yield lines


def _differs(row: BytesAt) -> bool:
    return row.expected is not None and row.implied != row.expected


def named(subjects: list[SubjectReport], style: Style) -> str:
    """Return the names of the first subjects, and how many there are more."""
    names = ", ".join(style.safe(subject.target) for subject in subjects[:_NAMES])
    rest = len(subjects) - _NAMES
    return f"{names} and {rest:,} more" if rest > 0 else names


def _columns(rows: tuple[BytesAt, ...], *, everything: bool) -> list[list[str]]:
    columns: list[tuple[str, list[int | None]]] = [
        ("this file", [row.implied for row in rows]),
        ("right conversion", [row.expected for row in rows]),
        ("architecture", [row.ideal for row in rows]),
        ("full attention", [row.full_attention for row in rows]),
    ]
    if not everything and any(row.expected is not None for row in rows):
        # What a runtime can't do is no fault of the file; it is there for who asks.
        del columns[2]
    shown = [(head, cells) for head, cells in columns if any(cell is not None for cell in cells)]
    texts = [[head, *map(mebibytes, cells)] for head, cells in shown]
    return [["tokens", *(f"{row.tokens:,}" for row in rows)], *texts]


def _remark(rows: tuple[BytesAt, ...]) -> str:
    worst = max(rows, key=lambda row: row.implied - (row.expected or row.implied))
    if not worst.expected or worst.implied <= worst.expected:
        return ""
    factor = f"{worst.implied / worst.expected:.1f}"
    return f"{factor} times a right conversion at {plural(worst.tokens, 'token')}"


def aligned(columns: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    """Yield the lines of a table, the heads of its columns first."""
    widths = [max(map(len, column)) for column in columns]
    for number, line in enumerate(zip(*columns, strict=True)):
        cells = "   ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
        yield style.paint(f"    {cells}", Paint.FAINT) if number == 0 else f"    {cells}"


def mebibytes(size_bytes: int | None) -> str:
    """Return whole MiB as a number; else two decimals and the exact bytes."""
    if size_bytes is None:
        return "-"
    whole, rest = divmod(size_bytes, _MIB)
    if rest == 0:
        return f"{whole:,}"
    return f"{size_bytes / _MIB:,.2f} ({size_bytes:,} B)"

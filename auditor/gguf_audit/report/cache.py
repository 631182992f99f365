"""The cache table of the text report: what the file makes llama.cpp keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gguf_audit.report.style import Detail, Paint, Style, plural
from gguf_audit.verdict import BytesAt, Report, SubjectReport

__all__ = ["aligned", "cache_tables", "mebibytes"]

_MIB = 1 << 20
#: Names of files shown in a title before the rest is counted.
_NAMES = 3


def cache_tables(report: Report, style: Style) -> Iterator[list[str]]:
    """Yield one table for all subjects with the same rows.

    Among several subjects only those are shown whose file differs from a right
    conversion, unless everything is wanted.
    """
    folded: dict[tuple[BytesAt, ...], list[SubjectReport]] = {}
    alone = len(report.subjects) == 1 or style.detail is Detail.EVERYTHING
    for subject in report.subjects:
        if subject.cache is None or not subject.cache.bytes:
            continue
        if alone or any(_differs(row) for row in subject.cache.bytes):
            folded.setdefault(subject.cache.bytes, []).append(subject)
    build = report.runtimes.get("llama.cpp", "")
    title = " ".join(f"KV cache in MiB: llama.cpp {build}".split()) + ", one sequence, f16"
    for rows, subjects in folded.items():
        name = "" if len(report.subjects) == 1 else f" ({_names(subjects, style)})"
        yield [f"  {style.paint(title + name, Paint.STRONG)}", *_table(rows, style)]


def _differs(row: BytesAt) -> bool:
    return row.expected is not None and row.implied != row.expected


def _names(subjects: list[SubjectReport], style: Style) -> str:
    names = ", ".join(style.safe(subject.target) for subject in subjects[:_NAMES])
    rest = len(subjects) - _NAMES
    return f"{names} and {rest:,} more" if rest > 0 else names


def _table(rows: tuple[BytesAt, ...], style: Style) -> Iterator[str]:
    columns: list[tuple[str, list[int | None]]] = [
        ("this file", [row.implied for row in rows]),
        ("right conversion", [row.expected for row in rows]),
        ("architecture", [row.ideal for row in rows]),
        ("full attention", [row.full_attention for row in rows]),
    ]
    if style.detail is not Detail.EVERYTHING and any(row.expected is not None for row in rows):
        # What a runtime can't do is no fault of the file; it is there for who asks.
        del columns[2]
    shown = [(head, cells) for head, cells in columns if any(cell is not None for cell in cells)]
    texts = [[head, *map(mebibytes, cells)] for head, cells in shown]
    texts.insert(0, ["tokens", *(f"{row.tokens:,}" for row in rows)])
    yield from aligned(texts, style)
    worst = max(rows, key=lambda row: row.implied - (row.expected or row.implied))
    if worst.expected and worst.implied > worst.expected:
        factor = f"{worst.implied / worst.expected:.1f}"
        at = f"at {plural(worst.tokens, 'token')}"
        yield style.paint(f"    {factor} times a right conversion {at}", Paint.DOUBTFUL)


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

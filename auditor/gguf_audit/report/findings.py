"""The findings of a report: one cause, one block, however many files have it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from gguf_audit.catalogue import Page
from gguf_audit.fields import Origin
from gguf_audit.finding import Finding
from gguf_audit.json_values import as_json
from gguf_audit.limits import LIMITS
from gguf_audit.report.style import Detail, Paint, Style, plural
from gguf_audit.report.wording import PAINTS, targets
from gguf_audit.verdict import SubjectReport
from gguf_audit.where import Where

__all__ = ["Cause", "Fact", "causes", "facts", "finding_blocks"]

#: A message may quote several strings, each of which its rule has cut.
_MESSAGE_CHARACTERS = 2000
#: Files named in a folded finding before the rest is counted.
_FILES = 5
#: Items of an array shown in a line before the rest is counted.
_ITEMS = 12

Label = Literal[
    "what", "expected", "found", "where", "files", "why", "also", "fix", "", "authority",
    "identity", "help",
]  # fmt: skip


class Fact(NamedTuple):
    """A line of what is told about a finding; the text is safe for a terminal."""

    label: Label
    text: str


class Cause(Struct, frozen=True, kw_only=True):
    """What is wrong, and every subject in which it was found."""

    #: Of the first subject.
    finding: Finding
    subjects: tuple[SubjectReport, ...]
    #: What repairs each of them, once.
    fixes: tuple[str, ...]


def causes(subjects: Iterable[SubjectReport]) -> list[Cause]:
    """Return what was found, equal findings folded, the worst first."""
    folded: dict[str, list[tuple[SubjectReport, Finding]]] = {}
    for subject in subjects:
        for finding in subject.findings:
            folded.setdefault(_cause(finding), []).append((subject, finding))
    found = [
        Cause(
            finding=same[0][1],
            subjects=tuple({id(subject): subject for subject, _ in same}.values()),
            fixes=tuple(dict.fromkeys(each.fix for _, each in same if each.fix is not None)),
        )
        for same in folded.values()
    ]
    return sorted(found, key=lambda cause: -cause.finding.severity.rank)


def finding_blocks(
    subjects: tuple[SubjectReport, ...], pages: Mapping[str, Page], style: Style
) -> Iterator[list[str]]:
    """Yield the lines of each cause for a reader of text."""
    among = targets(subjects)
    for cause in causes(subjects):
        finding = cause.finding
        label = style.paint(finding.severity.value, PAINTS[finding.severity])
        lines = [f"  {label} {style.paint(f'{finding.rule} {finding.name}', Paint.STRONG)}"]
        for name, text in facts(cause, among, pages, style):
            # A command is shown whole, so that it can be copied.
            lines += style.field(name, text, wrap=name != "fix")
        yield lines


def facts(cause: Cause, among: int, pages: Mapping[str, Page], style: Style) -> Iterator[Fact]:
    """Yield what is told about a cause, one of ``among`` targets' or several's."""
    finding, subject = cause.finding, cause.subjects[0]
    yield Fact("what", style.safe(finding.message, limit=_MESSAGE_CHARACTERS))
    if finding.expected is not None:
        yield Fact("expected", _value(finding.expected, style, finding.unit))
    if finding.actual is not None or finding.expected is not None:
        yield Fact("found", _found(finding, style))
    if place := _place(finding.where, subject, style):
        yield Fact("where", place)
    if among > 1 and subject.kind != "set":
        yield Fact("files", _files(cause, among, style))
    if finding.rule in pages and (why := pages[finding.rule].why):
        yield Fact("why", style.safe(why, limit=_MESSAGE_CHARACTERS))
    for consequence in finding.consequences[: LIMITS.shown_items]:
        yield Fact("also", style.safe(consequence, limit=_MESSAGE_CHARACTERS))
    if (rest := len(finding.consequences) - LIMITS.shown_items) > 0:
        yield Fact("also", f"and {rest:,} more")
    if cause.fixes:
        yield Fact("fix", style.safe(cause.fixes[0], limit=LIMITS.report_characters))
    if (rest := len(cause.fixes) - 1) > 0:
        yield Fact("", f"and likewise for {rest:,} more (--format json)")
    if style.detail is Detail.EVERYTHING:
        yield Fact("authority", style.safe(finding.authority, limit=_MESSAGE_CHARACTERS))
        yield Fact("identity", finding.fingerprint)
    yield Fact("help", style.safe(finding.help))


def _cause(finding: Finding) -> str:
    """Return what two files' findings must share to be told as one."""
    return json.dumps(
        [
            finding.rule,
            finding.severity,
            finding.message,
            as_json(finding.expected),
            as_json(finding.actual),
            finding.unit,
            finding.origin,
            replace(finding.where, file=None).to_dict(),
            finding.consequences,
        ]
    )


def _found(finding: Finding, style: Style) -> str:
    absent = finding.actual is None
    value = "absent" if absent else _value(finding.actual, style, finding.unit)
    match finding.origin:
        case None | Origin.KEY:
            return value
        case Origin.RUNTIME_DEFAULT:
            return (
                f"{value} (the runtime then takes its default)"
                if absent
                else f"{value} (runtime default)"
            )
        case Origin.SHAPE:
            return f"{value} (from a tensor's shape)"


def _value(value: object, style: Style, unit: str | None) -> str:
    match value:
        case str():
            return style.safe(value)
        case int() if unit is not None:
            return plural(value, style.safe(unit))
        case dict() if unit is not None:
            counts = list(cast("Mapping[object, object]", value).items())
            shown = [
                f"{style.safe(str(of))}: {_value(n, style, unit)}" for of, n in counts[:_ITEMS]
            ]
            return _some(shown, len(counts))
        case list() | tuple():
            items = cast("Sequence[object]", value)
            return _some([_value(item, style, unit) for item in items[:_ITEMS]], len(items))
        case _:
            return style.safe(json.dumps(as_json(value), ensure_ascii=False))


def _some(shown: Sequence[str], count: int) -> str:
    return ", ".join(shown) + (f", ... ({count:,} in all)" if count > len(shown) else "")


def _place(where: Where, subject: SubjectReport, style: Style) -> str:
    parts = [style.safe(part) for part in (where.key, where.tensor) if part is not None]
    if where.layer is not None:
        parts.append(f"layer {where.layer:,}")
    if where.block is not None:
        parts.append(f"block {where.block:,}")
    if where.offset is not None:
        parts.append(f"offset {where.offset:,}")
    if where.file is not None and len(subject.files) > 1:
        parts.append(style.safe(where.file, limit=LIMITS.report_characters))
    return ", ".join(parts)


def _files(cause: Cause, among: int, style: Style) -> str:
    targets = list(dict.fromkeys(subject.target for subject in cause.subjects))
    count = f"{len(targets):,} of {among:,}"
    if len(targets) == among:
        return count
    names = ", ".join(
        style.safe(target, limit=LIMITS.report_characters) for target in targets[:_FILES]
    )
    rest = len(targets) - _FILES
    return f"{count}: {names}" + (f" and {rest:,} more" if rest > 0 else "")

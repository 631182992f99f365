"""The findings of the text report: one block per cause, however many files have it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from gguf_audit.catalogue import Page
from gguf_audit.report.style import Detail, Paint, Style
from gguf_audit.rule import Finding, Severity
from gguf_audit.subject import Origin
from gguf_audit.verdict import SubjectReport, as_json
from gguf_audit.where import Where

__all__ = ["finding_blocks"]

_PAINTS = {Severity.ERROR: Paint.BAD, Severity.WARNING: Paint.DOUBTFUL, Severity.INFO: Paint.NOTE}
#: A message may quote several strings, each of which its rule has cut.
_MESSAGE_CHARACTERS = 2000
#: Files named in a folded finding before the rest is counted.
_FILES = 5
#: Items of an array shown in a line before the rest is counted.
_ITEMS = 12

Found = tuple[SubjectReport, Finding]


def finding_blocks(
    subjects: tuple[SubjectReport, ...], pages: Mapping[str, Page], style: Style
) -> Iterator[list[str]]:
    """Yield the lines of each finding, the worst first, equal ones folded."""
    folded: dict[str, list[Found]] = {}
    for subject in subjects:
        for finding in subject.findings:
            folded.setdefault(_cause(finding), []).append((subject, finding))
    # A set is no model of its own; what is said of it names its files.
    models = sum(subject.kind != "set" for subject in subjects)
    order = sorted(folded.values(), key=lambda found: -found[0][1].severity.rank)
    for found in order:
        yield list(_block(found, models, pages, style))


def _cause(finding: Finding) -> str:
    """Return what two files' findings must share to be told as one."""
    return json.dumps(
        [
            finding.rule,
            finding.severity,
            finding.message,
            as_json(finding.expected),
            as_json(finding.actual),
            finding.origin,
            dataclasses.replace(finding.where, file=None).to_dict(),
            finding.consequences,
        ]
    )


def _block(
    found: list[Found], among: int, pages: Mapping[str, Page], style: Style
) -> Iterator[str]:
    subject, finding = found[0]
    label = style.paint(finding.severity.value, _PAINTS[finding.severity])
    yield f"  {label} {style.paint(f'{finding.rule} {finding.name}', Paint.STRONG)}"
    message = style.safe(finding.message, limit=_MESSAGE_CHARACTERS)
    yield from style.field("what", message)
    if finding.expected is not None:
        yield from style.field("expected", _value(finding.expected, style))
    if finding.actual is not None or finding.expected is not None:
        yield from style.field("found", _found(finding, style))
    if place := _place(finding.where, subject, style):
        yield from style.field("where", place)
    if among > 1 and subject.kind != "set":
        yield from style.field("files", _files(found, among, style))
    if finding.rule in pages and (why := pages[finding.rule].why):
        yield from style.field("why", style.safe(why, limit=_MESSAGE_CHARACTERS))
    for consequence in finding.consequences:
        yield from style.field("also", style.safe(consequence, limit=_MESSAGE_CHARACTERS))
    yield from _fix(found, style)
    if style.detail is Detail.EVERYTHING:
        yield from style.field("authority", style.safe(finding.authority, limit=None))
        yield from style.field("identity", finding.fingerprint)
    yield from style.field("help", finding.help)


def _found(finding: Finding, style: Style) -> str:
    absent = finding.actual is None
    value = "absent" if absent else _value(finding.actual, style)
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


def _value(value: object, style: Style) -> str:
    match value:
        case str():
            return style.safe(value)
        case list() | tuple():
            items = cast("Sequence[object]", value)
            shown = [_value(item, style) for item in items[:_ITEMS]]
            rest = len(items) - len(shown)
            return ", ".join(shown) + (f", ... ({len(items):,} in all)" if rest else "")
        case _:
            return style.safe(json.dumps(as_json(value), ensure_ascii=False))


def _place(where: Where, subject: SubjectReport, style: Style) -> str:
    parts = [style.safe(part) for part in (where.key, where.tensor) if part is not None]
    if where.layer is not None:
        parts.append(f"layer {where.layer:,}")
    if where.block is not None:
        parts.append(f"block {where.block:,}")
    if where.offset is not None:
        parts.append(f"offset {where.offset:,}")
    if where.file is not None and len(subject.files) > 1:
        parts.append(style.safe(where.file, limit=None))
    return ", ".join(parts)


def _files(found: list[Found], among: int, style: Style) -> str:
    targets = list(dict.fromkeys(subject.target for subject, _ in found))
    count = f"{len(targets):,} of {among:,}"
    if len(targets) == among:
        return count
    names = ", ".join(style.safe(target, limit=None) for target in targets[:_FILES])
    rest = len(targets) - _FILES
    return f"{count}: {names}" + (f" and {rest:,} more" if rest > 0 else "")


def _fix(found: list[Found], style: Style) -> Iterator[str]:
    """Show one command whole, so that it can be copied; say where more are needed."""
    fixes = list(dict.fromkeys(finding.fix for _, finding in found if finding.fix is not None))
    if not fixes:
        return
    yield from style.field("fix", style.safe(fixes[0], limit=None), wrap=False)
    if len(fixes) > 1:
        yield from style.field("", f"and likewise for {len(fixes) - 1:,} more (--format json)")

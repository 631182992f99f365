"""The report for people: the verdict first, then what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from gguf_audit.catalogue import Page
from gguf_audit.report.accepted import (
    accepted_lines,
    policy_lines,
    policy_name,
    stale_lines,
)
from gguf_audit.report.cache import cache_tables
from gguf_audit.report.findings import finding_blocks
from gguf_audit.report.probe import probe_lines
from gguf_audit.report.style import Detail, Paint, Style, plural
from gguf_audit.rule import Severity, Skip
from gguf_audit.verdict import NO_REFERENCE, ReferenceFacts, Report, Status, SubjectReport

__all__ = ["ORIGINS", "render"]

#: Reasons for which rules did not look, before ``-v`` has to be asked for the rest.
_REASONS = 2
#: Where a reference was found, as people are told.
ORIGINS = {
    "hub": "the Hub",
    "cache": "the local Hub cache",
    "card": "built-in card",
    "folder": "folder",
    "gguf": "another GGUF",
}
#: Where the files of a model were found.
SOURCES = {
    "hub": "the Hub",
    "cache": "the local Hub cache",
    "url": "an address",
    "fsspec": "a file system of fsspec",
    "ollama": "Ollama's store",
    "lmstudio": "LM Studio's store",
}


def render(
    report: Report, *, pages: Mapping[str, Page] | None = None, style: Style | None = None
) -> str:
    """Return the report as text; ``pages`` tell why a finding matters."""
    style = style or Style()
    lines: list[str] = []
    for subject in report.subjects:
        lines += _verdict(subject, report, style)
    if style.detail is not Detail.VERDICT:
        lines += _references(report.subjects, style)
        lines += policy_lines(report, style)
        lines += accepted_lines(report, style)
        lines += stale_lines(report, style)
        for block in finding_blocks(report.subjects, pages or {}, style):
            lines += ["", *block]
        for table in cache_tables(report, style):
            lines += ["", *table]
        if skips := list(_skips(report.skips, style)):
            lines += ["", *skips]
    if len(report.subjects) != 1 or style.detail is not Detail.VERDICT:
        lines += ["", _summary(report, style)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _verdict(subject: SubjectReport, report: Report, style: Style) -> Iterator[str]:
    word, paint = _word(subject)
    says = [_counts([finding.severity for finding in subject.findings])]
    if subject.suppressed:
        says[0] = says[0].replace("nothing found", "nothing else found")
        says.append(f"{len(subject.suppressed):,} accepted")
    if subject.status is Status.PARTIAL:
        says.append(f"{plural(len(_gaps(subject.skips)), 'rule')} could not look")
    if subject.architecture is not None:
        says.append(style.safe(subject.architecture))
    if subject.kind != "model":
        says.append(subject.kind)
    if len(subject.files) > 1:
        says.append(plural(len(subject.files), "file"))
    if subject.status is Status.NOT_AUDITED:
        says = []
    if report.policy is not None and style.detail is Detail.VERDICT:
        # Nobody may be judged more mildly unseen, not even in one line.
        says.append(f"by {policy_name(report.policy, style)}")
    tail = f": {', '.join(says)}" if says else ""
    yield f"{style.paint(word, paint)}  {style.safe(subject.target, limit=None)}{tail}"
    for problem in subject.errors:
        place = [] if problem.where.file in (None, subject.target) else [problem.where.file or ""]
        named = (problem.where.key, problem.where.tensor)
        place += [name for name in named if name is not None and name not in problem.message]
        if problem.where.offset is not None:
            place.append(f"offset {problem.where.offset:,}")
        at = style.safe(f" ({', '.join(place)})" if place else "", limit=None)
        message = style.safe(problem.message, limit=4 * 200) + at
        yield from style.field("not done" if subject.findings else "because", message)
    yield from probe_lines(subject, style)
    if style.detail is Detail.EVERYTHING:
        yield from _source(subject, style)
        for file in subject.files:
            facts = f"{file.size_bytes:,} bytes, header sha256 {file.header_sha256}"
            yield from style.field("file", f"{style.safe(file.name, limit=None)}: {facts}")


def _source(subject: SubjectReport, style: Style) -> Iterator[str]:
    """Say where the files came from, and what that has cost."""
    source = subject.source
    if source is None:
        return
    place = style.safe(source.id, limit=None)
    if source.revision is not None:
        place += f" at {style.safe(source.revision)}"
    cost = f"{source.bytes:,} bytes in {plural(source.requests, 'request')}"
    note = f"; {style.safe(source.note, limit=4 * 200)}" if source.note else ""
    yield from style.field("source", f"{place} ({SOURCES[source.origin]}): {cost}{note}")


def _word(subject: SubjectReport) -> tuple[str, Paint]:
    match subject.status:
        case Status.CLEAN:
            return "CLEAN", Paint.GOOD
        case Status.PARTIAL:
            return "PARTIAL", Paint.DOUBTFUL
        case Status.NOT_AUDITED:
            return "NOT AUDITED", Paint.BAD
        case Status.FINDINGS:
            worst = max((finding.severity for finding in subject.findings), key=lambda s: s.rank)
        case _:
            assert_never(subject.status)
    paints = {
        Severity.ERROR: Paint.BAD,
        Severity.WARNING: Paint.DOUBTFUL,
        Severity.INFO: Paint.NOTE,
    }
    return worst.value.upper(), paints[worst]


def _counts(severities: list[Severity]) -> str:
    counts = [
        plural(severities.count(severity), severity.value)
        for severity in Severity
        if severity in severities
    ]
    return ", ".join(counts) or "nothing found"


def _references(subjects: Iterable[SubjectReport], style: Style) -> Iterator[str]:
    held: dict[ReferenceFacts, None] = {
        subject.reference: None for subject in subjects if subject.reference is not None
    }
    for reference in held:
        name = style.safe(reference.id, limit=None)
        if reference.revision is not None:
            name += f" at {style.safe(reference.revision)}"
        note = f"; {style.safe(reference.note, limit=4 * 200)}" if reference.note else ""
        yield from style.field("against", f"{name} ({ORIGINS[reference.origin]}){note}")


def _gaps(skips: Iterable[Skip]) -> list[Skip]:
    return [skip for skip in skips if skip.kind != "not-applicable"]


def _skips(skips: tuple[Skip, ...], style: Style) -> Iterator[str]:
    """Fold the rules that did not look by their reason, the alarming ones first."""
    everything = style.detail is Detail.EVERYTHING
    folded: dict[tuple[str, str], dict[str, None]] = {}
    for kind in ("crashed", "limit", "no-evidence", "not-applicable"):
        for skip in skips:
            told = everything or kind != "not-applicable" or skip.reason == NO_REFERENCE
            if skip.kind == kind and told:
                folded.setdefault((kind, skip.reason), {})[skip.rule] = None
    hidden = 0
    for position, ((kind, reason), rules) in enumerate(folded.items()):
        if kind in ("no-evidence", "not-applicable") and position >= _REASONS and not everything:
            hidden += len(rules)
            continue
        named = ", ".join(rules) if everything or len(rules) <= 3 else plural(len(rules), "rule")
        verb = {"crashed": "crashed: ", "limit": "hit a limit: "}.get(kind, "")
        text = f"{named}: {verb}{style.safe(reason, limit=4 * 200)}"
        matched = kind != "not-applicable" or reason == NO_REFERENCE
        yield from style.field("skipped" if matched else "no match", text)
    if hidden:
        yield from style.field("skipped", f"{plural(hidden, 'rule')} for other reasons (-v)")


def _summary(report: Report, style: Style) -> str:
    if not report.subjects:
        return style.paint("NOT AUDITED", Paint.BAD) + "  there was nothing to audit"
    summary = report.summary
    says = [
        plural(summary.errors, "error"),
        plural(summary.warnings, "warning"),
        plural(summary.infos, "info"),
    ]
    if summary.suppressed:
        says.append(f"{summary.suppressed:,} accepted")
    if summary.not_audited:
        says.append(f"{summary.not_audited:,} not fully audited")
    models = sum(subject.kind != "set" for subject in report.subjects)
    return f"{plural(models, 'model')}: {', '.join(says)}"

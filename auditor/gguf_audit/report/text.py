"""The report for people: the verdict first, then what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gguf_audit.catalogue import Page
from gguf_audit.evidence import NO_REFERENCE
from gguf_audit.finding import Skip
from gguf_audit.limits import LIMITS
from gguf_audit.report import accepted
from gguf_audit.report.cache import cache_tables
from gguf_audit.report.findings import finding_blocks
from gguf_audit.report.probe import probe_lines
from gguf_audit.report.style import Detail, Paint, Style, plural
from gguf_audit.report.wording import (
    REASON_CHARACTERS,
    facts_of,
    gaps,
    problem,
    references,
    summary,
    word,
)
from gguf_audit.verdict import Report, SubjectReport

__all__ = ["render"]

#: Reasons for which rules did not look, before ``-v`` has to be asked for the rest.
_REASONS = 2
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
        for said in references(report.subjects, style):
            lines += style.field("against", said)
        for label, text in accepted.told(report, style):
            lines += style.field(label, text)
        for block in finding_blocks(report.subjects, pages or {}, style):
            lines += ["", *block]
        for table in cache_tables(report, style):
            lines += ["", *table]
        if skips := list(_skips(report.skips, style)):
            lines += ["", *skips]
    if report.empty:
        lines = [style.paint("NOT AUDITED", Paint.BAD) + "  there was nothing to audit"]
    elif len(report.subjects) != 1 or style.detail is not Detail.VERDICT:
        lines += ["", summary(report)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _verdict(subject: SubjectReport, report: Report, style: Style) -> Iterator[str]:
    verdict, paint = word(subject)
    says = facts_of(subject, style)
    if report.policy is not None and style.detail is Detail.VERDICT:
        # Nobody may be judged more mildly unseen, not even in one line.
        says.append(f"by {accepted.policy_name(report.policy, style)}")
    tail = f": {', '.join(says)}" if says else ""
    target = style.safe(subject.target, limit=LIMITS.report_characters)
    yield f"{style.paint(verdict, paint)}  {target}{tail}"
    for error in subject.errors:
        label = "not done" if subject.findings else "because"
        yield from style.field(label, problem(error, subject, style))
    yield from probe_lines(subject, style)
    if style.detail is Detail.EVERYTHING:
        yield from _source(subject, style)
        for file in subject.files:
            name = style.safe(file.name, limit=LIMITS.report_characters)
            facts = f"{file.size_bytes:,} bytes, header sha256 {file.header_sha256}"
            yield from style.field("file", f"{name}: {facts}")


def _source(subject: SubjectReport, style: Style) -> Iterator[str]:
    """Say where the files came from, and what that has cost."""
    source = subject.source
    if source is None:
        return
    place = style.safe(source.id, limit=LIMITS.report_characters)
    if source.revision is not None:
        place += f" at {style.safe(source.revision)}"
    cost = f"{source.bytes:,} bytes in {plural(source.requests, 'request')}"
    note = f"; {style.safe(source.note, limit=REASON_CHARACTERS)}" if source.note else ""
    yield from style.field("source", f"{place} ({SOURCES[source.origin]}): {cost}{note}")


def _skips(skips: tuple[Skip, ...], style: Style) -> Iterator[str]:
    """Tell the rules that did not look by their reason, the alarming ones first."""
    everything = style.detail is Detail.EVERYTHING
    hidden = 0
    for position, (kind, reason, rules) in enumerate(gaps(skips, everything=everything)):
        if kind in ("no-evidence", "not-applicable") and position >= _REASONS and not everything:
            hidden += len(rules)
            continue
        named = ", ".join(rules) if everything or len(rules) <= 3 else plural(len(rules), "rule")
        verb = {"crashed": "crashed: ", "limit": "hit a limit: "}.get(kind, "")
        text = f"{named}: {verb}{style.safe(reason, limit=REASON_CHARACTERS)}"
        matched = kind != "not-applicable" or reason == NO_REFERENCE.reason
        yield from style.field("skipped" if matched else "no match", text)
    if hidden:
        yield from style.field("skipped", f"{plural(hidden, 'rule')} for other reasons (-v)")

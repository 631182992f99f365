"""The report as a page: one file without scripts, styles of its own, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree as ET

from gguf_audit.catalogue import Page
from gguf_audit.limits import LIMITS
from gguf_audit.report.accepted import told
from gguf_audit.report.cache import named, tables, title
from gguf_audit.report.findings import Cause, causes, facts
from gguf_audit.report.style import Detail, Paint, Style, plural
from gguf_audit.report.wording import (
    PAINTS,
    facts_of,
    gaps,
    models,
    problem,
    references,
    summary,
    targets,
    word,
)
from gguf_audit.verdict import Report, SubjectReport

__all__ = ["render"]

#: Facts that are names, values and commands; the others are sentences.
_CODE = ("expected", "found", "where", "files", "fix", "identity", "help")
_CLASSES = {Paint.BAD: "bad", Paint.DOUBTFUL: "doubtful", Paint.GOOD: "good", Paint.NOTE: "note"}
#: Should anything slip through, a browser still runs and loads nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLES = """
:root { color-scheme: light dark; --line: #8884; --faint: #6b6b6b; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin: 2.5rem 0 .5rem; font-size: 1.15rem; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap; }
table { border-collapse: collapse; } td, th { padding: .3rem .9rem .3rem 0; text-align: left; }
td, th { border-bottom: 1px solid var(--line); vertical-align: top; }
.numbers td, .numbers th { text-align: right; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: 6rem 1fr; gap: .25rem 1rem; margin: .5rem 0; }
dt, th, footer { color: var(--faint); font-weight: normal; } dd { margin: 0; }
footer { margin-top: 2.5rem; } td:nth-child(2) code { display: block; min-width: 9rem; }
.verdict { font-weight: 600; white-space: nowrap; }
.bad { color: #c62828; } .doubtful { color: #a15c00; } .good { color: #1b7e3c; } .note { color: #00708a; }
@media (prefers-color-scheme: dark) {
  :root { --faint: #a0a0a0; }
  .bad { color: #ff8a80; } .doubtful { color: #ffc266; } .good { color: #7ddc9a; } .note { color: #6fd3ea; }
}
"""


def render(
    report: Report, *, pages: Mapping[str, Page] | None = None, detail: Detail = Detail.NORMAL
) -> str:
    """Return the page in ASCII; ``pages`` tell why a finding matters."""
    style = Style(detail=detail)
    root = ET.Element("html", lang="en")
    root.append(_head(report))
    body = ET.SubElement(root, "body")
    _add(body, "h1", "gguf-audit")
    _add(body, "p", summary(report))
    if report.subjects:
        _verdicts(body, report.subjects, style)
    said = [("against", one) for one in references(report.subjects, style)]
    _terms(body, [*said, *told(report, style)])
    if detail is not Detail.VERDICT:
        among = targets(report.subjects)
        for cause in causes(report.subjects):
            _cause(body, cause, among, pages or {}, style)
        _caches(body, report, style)
        _skipped(body, report, style)
    runtimes = ", ".join(f"{name} {build}" for name, build in report.runtimes.items())
    _add(body, "footer", f"gguf-audit {report.version}; what is said of runtimes means {runtimes}")
    text: bytes = ET.tostring(root, encoding="us-ascii", method="html")
    return f"<!doctype html>\n{text.decode('ascii')}\n"


def _head(report: Report) -> ET.Element:
    head = ET.Element("head")
    ET.SubElement(head, "meta", charset="us-ascii")
    ET.SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": _POLICY})
    ET.SubElement(head, "meta", name="viewport", content="width=device-width")
    _add(head, "title", f"gguf-audit: {summary(report)}")
    _add(head, "style", _STYLES)
    return head


def _add(parent: ET.Element, tag: str, text: str = "", class_: str | None = None) -> ET.Element:
    """Add an element; its text is escaped when the page is written."""
    element = ET.SubElement(parent, tag, {} if class_ is None else {"class": class_})
    element.text = text
    return element


def _verdicts(body: ET.Element, subjects: Sequence[SubjectReport], style: Style) -> None:
    table = ET.SubElement(body, "table")
    for subject in subjects:
        row = ET.SubElement(table, "tr")
        verdict, paint = word(subject)
        _add(row, "td", verdict, f"verdict {_CLASSES[paint]}")
        target = style.safe(subject.target, limit=LIMITS.report_characters)
        _add(ET.SubElement(row, "td"), "code", target)
        cell = _add(row, "td", ", ".join(facts_of(subject, style)))
        for error in subject.errors[: LIMITS.shown_items]:
            _add(cell, "div", problem(error, subject, style))


def _cause(
    body: ET.Element, cause: Cause, among: int, pages: Mapping[str, Page], style: Style
) -> None:
    finding = cause.finding
    heading = _add(body, "h2")
    _add(heading, "span", finding.severity, _CLASSES[PAINTS[finding.severity]])
    heading[0].tail = f" {style.safe(f'{finding.rule} {finding.name}')}"
    (_, what), *rest = facts(cause, among, pages, style)
    _add(body, "p", what)
    _terms(body, rest)


def _terms(body: ET.Element, pairs: Iterable[tuple[str, str]]) -> None:
    terms = ET.Element("dl")
    for label, text in pairs:
        _add(terms, "dt", label)
        if label in _CODE:
            _add(ET.SubElement(terms, "dd"), "code", text)
        else:
            _add(terms, "dd", text)
    if len(terms):
        body.append(terms)


def _caches(body: ET.Element, report: Report, style: Style) -> None:
    for cache in tables(report, everything=style.detail is Detail.EVERYTHING):
        of = "" if models(report.subjects) == 1 else f" ({named(cache.subjects, style)})"
        _add(body, "h2", title(report) + of)
        table = ET.SubElement(body, "table", {"class": "numbers"})
        for number, cells in enumerate(zip(*cache.columns, strict=True)):
            row = ET.SubElement(table, "tr")
            for cell in cells:
                _add(row, "td" if number else "th", cell)
        if cache.remark:
            _add(body, "p", cache.remark, "doubtful")


def _skipped(body: ET.Element, report: Report, style: Style) -> None:
    found = gaps(report.skips, everything=style.detail is Detail.EVERYTHING)
    if found:
        _add(body, "h2", "Rules that did not look")
    listed = ET.Element("ul")
    for kind, reason, rules in found:
        which = ", ".join(rules) if len(rules) <= 3 else plural(len(rules), "rule")
        why = style.safe(reason, limit=LIMITS.report_characters)
        _add(listed, "li", f"{style.safe(which)}: {why} ({kind})")
    if len(listed):
        body.append(listed)

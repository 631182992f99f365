"""The report for GitHub Actions: workflow commands that become annotations.

    ::error file=model.gguf,line=1,title=KV103 window-lost::needs a 512-token window...

A step shows ten errors and ten warnings, so that equal findings of many files are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gguf_audit.catalogue import Page
from gguf_audit.limits import LIMITS
from gguf_audit.report.accepted import policy_name
from gguf_audit.report.findings import Cause, causes, facts
from gguf_audit.report.places import Checkout
from gguf_audit.report.style import Style
from gguf_audit.report.wording import gaps, problem, summary, targets
from gguf_audit.rule import Severity
from gguf_audit.verdict import Report

__all__ = ["render"]

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
#: What an annotation leaves out: the title and the file say it, or the log is no place.
_UNTOLD = ("help", "authority", "identity")


def render(
    report: Report,
    *,
    pages: Mapping[str, Page] | None = None,
    checkout: Checkout | None = None,
    style: Style | None = None,
) -> str:
    """Return a command for each cause, for what was not audited, and a line for the log."""
    checkout, style = checkout or Checkout(), style or Style()
    lines = list(_not_audited(report, checkout, style))
    among = targets(report.subjects)
    lines += [
        _annotation(cause, among, pages or {}, checkout, style) for cause in causes(report.subjects)
    ]
    if report.policy is not None:
        lines.append(f"policy: {policy_name(report.policy, style)}")
    return "\n".join([*lines, summary(report)]) + "\n"


def _not_audited(report: Report, checkout: Checkout, style: Style) -> Iterator[str]:
    for subject in report.subjects:
        for error in subject.errors:
            file = style.safe(checkout.path(subject, error.where), limit=LIMITS.report_characters)
            yield _command("error", problem(error, subject, style), "not audited", file)
    for kind, reason, rules in gaps(report.skips):
        if kind == "not-applicable":
            continue
        told = "error" if kind in ("crashed", "limit") else "notice"
        text = f"{reason} ({', '.join(rules)})"
        yield _command(told, style.safe(text, limit=LIMITS.report_characters), f"skipped: {kind}")


def _annotation(
    cause: Cause, among: int, pages: Mapping[str, Page], checkout: Checkout, style: Style
) -> str:
    finding = cause.finding
    told = [fact for fact in facts(cause, among, pages, style) if fact.label not in _UNTOLD]
    message = "\n".join(
        fact.text if fact.label in ("what", "") else f"{fact.label}: {fact.text}" for fact in told
    )
    path = checkout.path(cause.subjects[0], finding.where)
    file = style.safe(path, limit=LIMITS.report_characters)
    title = style.safe(f"{finding.rule} {finding.name}")
    return _command(_COMMANDS[finding.severity], message, title, file)


def _command(name: str, message: str, title: str, file: str | None = None) -> str:
    """Return a workflow command as actions/toolkit writes it (packages/core/src/command.ts)."""
    place = [] if file is None else [f"file={_property(file)}", "line=1"]
    return f"::{name} {','.join([*place, f'title={_property(title)}'])}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

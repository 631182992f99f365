"""What a report says of policies, baselines, and what they have accepted."""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.limits import LIMITS
from gguf_audit.report.style import Detail, Style, plural
from gguf_audit.report.wording import REASON_CHARACTERS
from gguf_audit.verdict import Accepted, PolicyFacts, Report

__all__ = ["policy_name", "told", "why"]

#: Accepted findings that are named before the rest is counted.
_SHOWN = 10


def policy_name(policy: PolicyFacts, style: Style) -> str:
    """Return what a policy is called in a line."""
    profile = "" if policy.profile is None else f"profile {policy.profile}"
    if policy.file is None:
        return profile
    file = style.safe(policy.file, limit=LIMITS.report_characters)
    return f"{file}, {profile}" if profile else file


def told(report: Report, style: Style) -> Iterator[tuple[str, str]]:
    """Yield a label and a line for each thing that a reader should hear."""
    yield from _policy(report, style)
    yield from _accepted(report, style)
    yield from _stale(report, style)


def _policy(report: Report, style: Style) -> Iterator[tuple[str, str]]:
    """Yield which policy the audit went by, and what its author should hear."""
    policy = report.policy
    if policy is None:
        return
    found = " (found from the working directory upwards)" if policy.found else ""
    yield "policy", policy_name(policy, style) + found
    for note in policy.notes:
        yield "expired", style.safe(note, limit=REASON_CHARACTERS)


def _accepted(report: Report, style: Style) -> Iterator[tuple[str, str]]:
    """Yield a line for each accepted finding, equal ones folded over files."""
    folded: dict[tuple[str, str, str], list[str]] = {}
    for subject in report.subjects:
        for each in subject.suppressed:
            finding = each.finding
            key = (each.by, f"{finding.severity.value} {finding.rule} {finding.name}", why(each))
            folded.setdefault(key, []).append(subject.target)
    rows = list(folded.items())
    shown = len(rows) if style.detail is Detail.EVERYTHING else _SHOWN
    for (by, what, reason), targets in rows[:shown]:
        label = "accepted" if by == "policy" else "known"
        names = list(dict.fromkeys(targets))
        where = names[0] if len(names) == 1 else plural(len(names), "file")
        if len(targets) > len(names):
            what = f"{what} ({plural(len(targets), 'finding')})"
        yield (
            label,
            f"{what} in {style.safe(where, limit=LIMITS.report_characters)}: {style.safe(reason)}",
        )
    if len(rows) > shown:
        yield "accepted", f"{len(rows) - shown:,} more (-v)"


def _stale(report: Report, style: Style) -> Iterator[tuple[str, str]]:
    """Yield what the baseline knows and nobody finds any more."""
    if report.baseline is None:
        return
    stale = report.baseline.stale
    for target, rule, fingerprint in stale[:_SHOWN]:
        what = f"{rule} {fingerprint} in {target} is in the baseline and not in the file any more"
        yield "stale", style.safe(what, limit=REASON_CHARACTERS)
    if len(stale) > _SHOWN:
        yield "stale", f"{len(stale) - _SHOWN:,} more (--format json)"


def why(each: Accepted) -> str:
    """Return why a finding doesn't count."""
    if each.by == "baseline":
        return "in the baseline"
    return f"{each.reason}, until {each.expires}"

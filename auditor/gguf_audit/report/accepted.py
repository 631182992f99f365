"""What the text report says of policies, baselines, and what they have accepted."""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.report.style import Detail, Style, plural
from gguf_audit.verdict import Accepted, PolicyFacts, Report

__all__ = ["accepted_lines", "policy_lines", "policy_name", "stale_lines"]

#: Accepted findings that are named before the rest is counted.
_SHOWN = 10


def policy_name(policy: PolicyFacts, style: Style) -> str:
    """Return what a policy is called in a line."""
    profile = "" if policy.profile is None else f"profile {policy.profile}"
    if policy.file is None:
        return profile
    file = style.safe(policy.file, limit=None)
    return f"{file}, {profile}" if profile else file


def policy_lines(report: Report, style: Style) -> Iterator[str]:
    """Yield which policy the audit went by, and what its author should hear."""
    policy = report.policy
    if policy is None:
        return
    found = " (found from the working directory upwards)" if policy.found else ""
    yield from style.field("policy", policy_name(policy, style) + found)
    for note in policy.notes:
        yield from style.field("expired", style.safe(note, limit=4 * 200))


def accepted_lines(report: Report, style: Style) -> Iterator[str]:
    """Yield a line for each accepted finding, equal ones folded over files."""
    folded: dict[tuple[str, str, str], list[str]] = {}
    for subject in report.subjects:
        for each in subject.suppressed:
            finding = each.finding
            key = (each.by, f"{finding.severity.value} {finding.rule} {finding.name}", _why(each))
            folded.setdefault(key, []).append(subject.target)
    rows = list(folded.items())
    shown = len(rows) if style.detail is Detail.EVERYTHING else _SHOWN
    for (by, what, why), targets in rows[:shown]:
        label = "accepted" if by == "policy" else "known"
        names = list(dict.fromkeys(targets))
        where = names[0] if len(names) == 1 else plural(len(names), "file")
        yield from style.field(
            label, f"{what} in {style.safe(where, limit=None)}: {style.safe(why)}"
        )
    if len(rows) > shown:
        yield from style.field("accepted", f"{len(rows) - shown:,} more (-v)")


def stale_lines(report: Report, style: Style) -> Iterator[str]:
    """Yield what the baseline knows and nobody finds any more."""
    if report.baseline is None:
        return
    stale = report.baseline.stale
    for target, rule, fingerprint in stale[:_SHOWN]:
        what = f"{rule} {fingerprint} in {target} is in the baseline and not in the file any more"
        yield from style.field("stale", style.safe(what, limit=4 * 200))
    if len(stale) > _SHOWN:
        yield from style.field("stale", f"{len(stale) - _SHOWN:,} more (--format json)")


def _why(each: Accepted) -> str:
    if each.by == "baseline":
        return "in the baseline"
    return f"{each.reason}, until {each.expires}"

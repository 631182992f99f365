"""Findings that don't count: suppressed by a policy, or known from an earlier report.

They stay in the report, with who accepted them and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from gguf_audit.finding import Finding
from gguf_audit.limits import LIMITS
from gguf_audit.policies import Policy, PolicyError, Suppression, matches
from gguf_audit.policies.files import read_file
from gguf_audit.rule import Severity
from gguf_audit.verdict import Accepted, BaselineFacts, Report, SubjectReport

__all__ = ["Baseline", "held_against", "read_baseline", "suppressed_by"]


def suppressed_by(policy: Policy, report: Report, *, today: date) -> Report:
    """Set aside what the policy suppresses; say which suppressions no longer do.

    One that has expired is told only where it would have hidden something.
    """
    notes: dict[str, None] = {}

    def accepted(subject: SubjectReport, finding: Finding) -> Accepted | None:
        for entry in policy.suppressions:
            if not _means(entry, subject, finding):
                continue
            if today <= entry.expires:
                expires = entry.expires.isoformat()
                return Accepted(finding=finding, by="policy", reason=entry.reason, expires=expires)
            what = f"{entry.rule} in {entry.file} is suppressed no longer"
            notes[f"{what}: it expired on {entry.expires.isoformat()} ({entry.reason})"] = None
        return None

    report = _set_aside(report, accepted)
    if report.policy is None or not notes:
        return report
    told = (*report.policy.notes, *notes)
    return replace(report, policy=replace(report.policy, notes=told))


def _means(entry: Suppression, subject: SubjectReport, finding: Finding) -> bool:
    if entry.rule.upper() != finding.rule and entry.rule != finding.name:
        return False
    if entry.key is not None and entry.key != finding.where.key:
        return False
    if entry.fingerprint is not None and entry.fingerprint != finding.fingerprint:
        return False
    names = {subject.target, finding.where.file or subject.target}
    return any(matches(entry.file, name) for name in names)


class Baseline(Struct, frozen=True, kw_only=True):
    """What an earlier report found: by target, then by fingerprint."""

    file: str
    #: Target -> fingerprint -> (rule, severity).
    known: Mapping[str, Mapping[str, tuple[str, Severity]]]

    def of(self, target: str) -> str | None:
        """Return which of its targets this one is, ``None`` for a new one.

        A path changes from machine to machine, a file's name doesn't; where two targets
        share a name, or the path itself is there, the path counts.
        """
        if target in self.known:
            return target
        name = Path(target).name
        same = [each for each in self.known if Path(each).name == name]
        return same[0] if len(same) == 1 else None


def held_against(baseline: Baseline, report: Report, *, ran: AbstractSet[str]) -> Report:
    """Set aside what the baseline knows, and say what of it is found no more.

    What has become more severe since is new. What a rule found that did not look this
    time, or is none of those that ``ran``, is not stale.
    """
    known = {subject.target: baseline.of(subject.target) for subject in report.subjects}
    targets = list(known.values())

    def entries(subject: SubjectReport) -> Mapping[str, tuple[str, Severity]]:
        old = known[subject.target]
        # Two files can't both be the one that the baseline saw.
        unclear = old != subject.target and targets.count(old) > 1
        return {} if old is None or unclear else baseline.known[old]

    def accepted(subject: SubjectReport, finding: Finding) -> Accepted | None:
        entry = entries(subject).get(finding.fingerprint)
        if entry is None or finding.severity.rank > entry[1].rank:
            return None
        return Accepted(finding=finding, by="baseline")

    found: dict[str, set[str]] = {}
    for subject in report.subjects:
        found.setdefault(subject.target, set()).update(
            each.fingerprint for each in _all_of(subject)
        )
    stale = tuple(
        (subject.target, rule, fingerprint)
        for subject in report.subjects
        for fingerprint, (rule, _) in entries(subject).items()
        if subject.files or (subject.kind == "set" and not subject.errors)
        if fingerprint not in found[subject.target]
        if rule in ran and rule not in {skip.rule for skip in subject.skips}
    )
    held = _set_aside(report, accepted)
    return replace(held, baseline=BaselineFacts(file=baseline.file, stale=stale))


def _all_of(subject: SubjectReport) -> Iterator[Finding]:
    yield from subject.findings
    yield from (each.finding for each in subject.suppressed)


def _set_aside(
    report: Report, accepted: Callable[[SubjectReport, Finding], Accepted | None]
) -> Report:
    subjects: list[SubjectReport] = []
    for subject in report.subjects:
        left: list[Finding] = []
        aside: list[Accepted] = []
        for finding in subject.findings:
            found = accepted(subject, finding)
            if found is None:
                left.append(finding)
            else:
                aside.append(found)
        subjects.append(
            replace(subject, findings=tuple(left), suppressed=(*subject.suppressed, *aside))
        )
    return replace(report, subjects=tuple(subjects))


def read_baseline(path: Path) -> Baseline:
    """Return what a JSON report of an earlier run found.

    What that run had itself taken from a baseline is known too; what a policy suppressed
    is not, because that expires. Raises PolicyError.
    """
    content = read_file(path, limit_bytes=LIMITS.baseline_bytes)
    try:
        document = json.loads(content)
        return Baseline(file=str(path), known=_known(document))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        what = "is no report of gguf-audit; write one with --format json"
        raise PolicyError(f"{path} {what}") from None


def _known(document: object) -> dict[str, dict[str, tuple[str, Severity]]]:
    targets: dict[str, dict[str, tuple[str, Severity]]] = {}
    report = cast("dict[str, object]", document)
    if report["version"] != 1:
        raise ValueError(report["version"])
    for subject in cast("Sequence[dict[str, object]]", report["subjects"]):
        findings = list(cast("Sequence[dict[str, object]]", subject["findings"]))
        findings += (
            each
            for each in cast("Sequence[dict[str, object]]", subject.get("suppressed", ()))
            if cast("dict[str, object]", each["suppression"])["by"] == "baseline"
        )
        # The sets of one folder share their target.
        known = targets.setdefault(str(subject["target"]), {})
        for finding in findings:
            severity = Severity(str(finding["severity"]))
            fingerprint = str(finding["fingerprint"])
            worst = known.get(fingerprint, ("", severity))[1]
            worst = max(worst, severity, key=lambda each: each.rank)
            known[fingerprint] = (str(finding["rule"]), worst)
    return targets

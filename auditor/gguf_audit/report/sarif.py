"""The report for code scanning: SARIF 2.1.0 as GitHub and others take it in.

Every result has a place that a code-scanning page can show: a file relative to the
repository, and its first line, because lines are what such pages know. What was not
audited, and what rules could not look at, are notifications of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from gguf_audit.catalogue import Page, family
from gguf_audit.finding import Finding, SkipKind
from gguf_audit.json_values import as_json, without_surrogates
from gguf_audit.limits import LIMITS
from gguf_audit.report.accepted import told
from gguf_audit.report.findings import Cause, facts
from gguf_audit.report.json import document
from gguf_audit.report.pages import sections
from gguf_audit.report.places import Checkout
from gguf_audit.report.style import Style
from gguf_audit.report.wording import gaps, problem
from gguf_audit.rule import Severity
from gguf_audit.verdict import Report, SubjectReport
from gguf_audit.where import Where

__all__ = ["render"]

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
#: GitHub refuses a run with more results.
_RESULTS = 25_000
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
#: GitHub's own scale for what is no security alert.
_PROBLEMS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "recommendation",
}
_NOTIFICATIONS: dict[SkipKind, str] = {
    "crashed": "error",
    "limit": "error",
    "no-evidence": "warning",
    "not-applicable": "note",
}
#: What the page or the properties of a result say already.
_UNTOLD = ("why", "help", "authority", "identity")
_STYLE = Style()


def render(
    report: Report, *, pages: Mapping[str, Page] | None = None, checkout: Checkout | None = None
) -> str:
    """Return the log in ASCII; ``pages`` are the help of its rules."""
    checkout = checkout or Checkout()
    # The worst come first, should there be too many.
    found = sorted(
        ((subject, finding) for subject in report.subjects for finding in subject.findings),
        key=lambda pair: -pair[1].severity.rank,
    )
    rules = {finding.rule: finding for _, finding in reversed(found)}
    rules = dict(sorted(rules.items()))
    index = {code: position for position, code in enumerate(rules)}
    results = [
        _result(subject, finding, index[finding.rule], checkout)
        for subject, finding in found[:_RESULTS]
    ]
    notifications = list(_notifications(report, checkout))
    if (rest := len(found) - _RESULTS) > 0:
        notifications.append(_notification("error", f"{rest:,} more findings are not told"))
    run = {
        "tool": {
            "driver": {
                "name": "gguf-audit",
                "version": report.version,
                "rules": [
                    _rule(finding, (pages or {}).get(code)) for code, finding in rules.items()
                ],
            }
        },
        "invocations": [
            {
                "executionSuccessful": bool(report.subjects) and not report.summary.not_audited,
                "toolExecutionNotifications": notifications,
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    log = without_surrogates({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
    return document(cast("dict[str, object]", log), indent=1)


def _rule(finding: Finding, page: Page | None) -> dict[str, object]:
    """Describe a rule by its page; one that is not installed by its name."""
    summary = finding.name if page is None else page.summary
    text = finding.help if page is None else sections(page)
    return {
        "id": finding.rule,
        "name": finding.name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary if page is None else page.why or summary},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "properties": {
            "tags": ["gguf", family(finding.rule)],
            "problem.severity": _PROBLEMS[finding.severity],
            "authority": finding.authority,
        },
    }


def _result(
    subject: SubjectReport, finding: Finding, index: int, checkout: Checkout
) -> dict[str, object]:
    one = Cause(
        finding=finding,
        subjects=(subject,),
        fixes=() if finding.fix is None else (finding.fix,),
    )
    lines = [fact for fact in facts(one, 1, {}, _STYLE) if fact.label not in _UNTOLD]
    text = "\n".join(
        fact.text if fact.label in ("what", "") else f"{fact.label}: {fact.text}" for fact in lines
    )
    where = {key: as_json(part) for key, part in finding.where.to_dict().items()}
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": text or finding.name},
        "locations": [_location(subject, finding.where, checkout)],
        "partialFingerprints": {
            "ggufAudit/v1": finding.fingerprint,
            # The one by which GitHub knows a result again, with its rule and its file. The
            # upload would else hash lines of the file itself.
            "primaryLocationLineHash": f"{finding.fingerprint}:1",
        },
        "properties": {
            "target": as_json(subject.target),
            "where": where,
            "expected": as_json(finding.expected),
            "actual": as_json(finding.actual),
            "unit": as_json(finding.unit),
            "fix": as_json(finding.fix),
        },
    }


def _location(subject: SubjectReport, where: Where, checkout: Checkout) -> dict[str, object]:
    location: dict[str, object] = {
        "physicalLocation": {
            "artifactLocation": {"uri": checkout.uri(subject, where)},
            "region": {"startLine": 1},
        }
    }
    names = [("key", where.key), ("tensor", where.tensor)]
    logical = [
        {"fullyQualifiedName": _STYLE.safe(name), "kind": kind}
        for kind, name in names
        if name is not None
    ]
    return {**location, "logicalLocations": logical} if logical else location


def _notifications(report: Report, checkout: Checkout) -> Iterator[dict[str, object]]:
    if report.empty:
        yield _notification("error", "there was nothing to audit")
    for subject in report.subjects:
        for error in subject.errors:
            target = _STYLE.safe(subject.target, limit=LIMITS.report_characters)
            text = f"{target} was not audited: {problem(error, subject, _STYLE)}"
            place = _location(subject, error.where, checkout)
            yield {
                **_notification("error", text),
                "descriptor": {"id": error.code},
                "locations": [place],
            }
    for label, text in told(report, _STYLE):
        # As results they would be open alerts: code scanning knows no suppressions.
        yield _notification("note", f"{label}: {text}")
    for kind, reason, rules in gaps(report.skips):
        why = _STYLE.safe(reason, limit=LIMITS.report_characters)
        text = f"{', '.join(map(_STYLE.safe, rules))} did not look ({kind}): {why}"
        note = _notification(_NOTIFICATIONS[kind], text)
        yield {**note, "associatedRule": {"id": rules[0]}} if len(rules) == 1 else note


def _notification(level: str, text: str) -> dict[str, object]:
    return {"level": level, "message": {"text": text}}

"""The report for systems that show tests: JUnit XML, a suite for each subject.

The case ``audit`` fails to run where something that was asked for was not audited; a
rule that found something or could not look has a case of its own. What ``--fail-on`` lets
pass is told as output of a case that passed, so that the tests are red exactly where the
exit code is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from gguf_audit.catalogue import Page
from gguf_audit.limits import LIMITS
from gguf_audit.report.accepted import why
from gguf_audit.report.findings import causes, facts
from gguf_audit.report.style import Style
from gguf_audit.report.wording import gaps, problem
from gguf_audit.rule import Severity
from gguf_audit.verdict import Report, SubjectReport, pardoned

__all__ = ["render"]

#: Nothing but printable characters: XML has no way to write most of the others.
_STYLE = Style()


def render(
    report: Report,
    *,
    pages: Mapping[str, Page] | None = None,
    fail_on: Severity | None = Severity.ERROR,
    allow_unknown: bool = False,
) -> str:
    """Return the document in ASCII; the other arguments are those of ``Report.exit_code``."""
    root = ET.Element("testsuites", name="gguf-audit")
    for subject in report.subjects:
        root.append(_suite(subject, pages or {}, fail_on, allow_unknown))
    if report.empty:
        root.append(_nothing())
    for suite in root:
        _count(suite)
    _total(root)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return text.decode("ascii") + "\n"


def _suite(
    subject: SubjectReport, pages: Mapping[str, Page], fail_on: Severity | None, allow_unknown: bool
) -> ET.Element:
    name = _STYLE.safe(subject.target, limit=LIMITS.report_characters)
    suite = ET.Element("testsuite", name=name)
    case = _case(suite, name, "audit")
    for error in subject.errors:
        if error.code not in pardoned(allow_unknown=allow_unknown):
            _say(case, "error", error.code, problem(error, subject, _STYLE))
    for cause in causes([subject]):
        finding = cause.finding
        case = _case(suite, name, _STYLE.safe(f"{finding.rule} {finding.name}"))
        told = [f"{label:<9} {text}" for label, text in facts(cause, 1, pages, _STYLE)]
        failed = fail_on is not None and finding.severity.rank >= fail_on.rank
        if failed:
            message = _STYLE.safe(finding.message, limit=LIMITS.report_characters)
            _say(case, "failure", finding.severity, message, "\n".join(told))
        else:
            ET.SubElement(case, "system-out").text = "\n".join([finding.severity, *told])
    for each in subject.suppressed:
        case = _case(suite, name, _STYLE.safe(f"{each.finding.rule} {each.finding.name}"))
        _say(case, "skipped", "accepted", _STYLE.safe(f"accepted: {why(each)}"))
    for kind, reason, rules in gaps(subject.skips):
        for rule in rules if kind != "not-applicable" else ():
            text = _STYLE.safe(reason, limit=LIMITS.report_characters)
            broken = kind in ("crashed", "limit")
            case = _case(suite, name, _STYLE.safe(rule))
            _say(case, "error" if broken else "skipped", kind, text)
    return suite


def _nothing() -> ET.Element:
    suite = ET.Element("testsuite", name="gguf-audit")
    _say(_case(suite, "gguf-audit", "audit"), "error", "source", "there was nothing to audit")
    return suite


def _case(suite: ET.Element, classname: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=classname, name=name, time="0")


def _say(case: ET.Element, result: str, type_: str, message: str, text: str | None = None) -> None:
    ET.SubElement(case, result, type=type_, message=message).text = text


def _count(suite: ET.Element) -> None:
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    for name, result in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(result) is not None for case in cases)))
    suite.set("time", "0")


def _total(root: ET.Element) -> None:
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", "0")

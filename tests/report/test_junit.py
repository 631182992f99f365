from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from msgspec.structs import replace

from gguf_audit.finding import Skip
from gguf_audit.report.junit import render
from gguf_audit.rule import Severity
from gguf_audit.verdict import Problem, SubjectReport
from gguf_audit.where import Where
from report_examples import CONTEXT, LOST, UNREADABLE, everywhere, report

CRASHED = replace(
    LOST, findings=(), skips=(Skip(rule="KV101", kind="crashed", reason="ValueError: x"),)
)
UNKNOWN = SubjectReport(
    target="new.gguf",
    errors=(Problem(code="unknown-architecture", message="nonesuch", where=Where()),),
)
INFO = replace(LOST, findings=(replace(CONTEXT, severity=Severity.INFO),), skips=())


def read(text: str) -> Any:
    """Return the suites as another program reads them."""
    suites: Any = JUnitXml.fromstring(text.encode("ascii"))
    assert isinstance(suites, JUnitXml)
    return suites


def cases(text: str) -> dict[tuple[str, str], Any]:
    """Return the cases by file and name."""
    found = [case for suite in read(text) for case in suite]
    assert read(text).tests == len(found)
    return {(case.classname, case.name): case for case in found}


def results(text: str) -> dict[tuple[str, str], list[tuple[str, str | None, str | None]]]:
    return {
        name: [(type(each).__name__, each.type, each.message) for each in case.result]
        for name, case in cases(text).items()
    }


def test_what_another_program_reads() -> None:
    assert results(render(report(LOST, UNREADABLE, CRASHED), fail_on=Severity.WARNING)) == {
        ("lost.gguf", "audit"): [],
        ("lost.gguf", "KV103 window-lost"): [
            (
                "Failure",
                "error",
                "needs a 512-token window on 15 of 18 layers, the key is absent",
            )
        ],
        ("lost.gguf", "CTX001 context-length-changed"): [
            ("Failure", "warning", "131072 tokens, the reference was trained on 32768")
        ],
        ("lost.gguf", "TOK004"): [("Skipped", "no-evidence", "the card has no tokenizer")],
        ("lost.gguf", "TPL001"): [("Skipped", "no-evidence", "the card has no template")],
        ("cut.gguf", "audit"): [
            ("Error", "malformed", "the header ends in the middle of a key (offset 77)")
        ],
        ("lost.gguf", "KV101"): [("Error", "crashed", "ValueError: x")],
    }


def test_a_failure_tells_what_to_do() -> None:
    failure: Any
    [failure] = cases(render(report(LOST)))["lost.gguf", "KV103 window-lost"].result
    assert "fix       reconvert (no metadata tool can add this key)" in str(failure.text)


def test_what_may_pass_is_told_by_a_case_that_passed() -> None:
    case = cases(render(report(LOST)))["lost.gguf", "CTX001 context-length-changed"]
    assert case.result == []
    assert str(case.system_out).startswith("warning\nwhat      131072 tokens")


def test_counts_are_those_of_the_results() -> None:
    suites = read(render(report(LOST, UNREADABLE)))
    counted = [(suite.tests, suite.failures, suite.errors, suite.skipped) for suite in suites]
    assert counted == [(5, 1, 0, 2), (1, 0, 1, 0)]
    assert (suites.tests, suites.failures, suites.errors, suites.skipped) == (6, 1, 1, 2)


def test_nothing_to_audit_is_an_error() -> None:
    assert results(render(report())) == {
        ("gguf-audit", "audit"): [("Error", "source", "there was nothing to audit")]
    }


@pytest.mark.parametrize("fail_on", [*Severity, None])
@pytest.mark.parametrize("allow_unknown", [True, False])
def test_tests_are_red_exactly_where_the_exit_code_is_not_zero(
    fail_on: Severity | None, allow_unknown: bool
) -> None:
    subjects = (LOST, UNREADABLE, CRASHED, UNKNOWN, INFO, SubjectReport(target="fine.gguf"))
    for several in itertools.chain(*(itertools.combinations(subjects, n) for n in range(3))):
        found = report(*several)
        text = render(found, fail_on=fail_on, allow_unknown=allow_unknown)
        kinds: set[type[object]] = {
            type(each) for case in cases(text).values() for each in case.result
        }
        code = found.exit_code(fail_on, allow_unknown=allow_unknown)
        assert (Failure in kinds) == (code == 1), several
        assert (kinds <= {Skipped}) == (code == 0), several
        assert code != 3 or Error in kinds


def test_what_was_accepted_is_skipped_with_its_reason() -> None:
    subject = everywhere("known")
    assert results(render(report(subject)))["known", "CTX001 context-length-changed"] == [
        ("Skipped", "accepted", "accepted: known, until 2027-01-01")
    ]


@given(st.text())
def test_no_text_from_a_file_breaks_the_document(text: str) -> None:
    found = read(render(report(everywhere(text))))
    assert (found.tests, found.failures, found.errors, found.skipped) == (5, 0, 2, 2)

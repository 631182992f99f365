from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gguf_audit.errors import MalformedError
from gguf_audit.finding import Skip, SkipKind
from gguf_audit.rule import Severity
from gguf_audit.verdict import Problem, Status, SubjectReport, Summary
from gguf_audit.where import Where
from report_examples import CONTEXT, LOST, UNREADABLE, WINDOW_LOST, report

CLEAN = SubjectReport(target="fine.gguf", architecture="llama")


def skipping(kind: SkipKind) -> SubjectReport:
    return replace(CLEAN, skips=(Skip(rule="KV101", kind=kind, reason="why"),))


def failing(code: str) -> SubjectReport:
    problem = Problem(code=code, message="m", where=Where())
    return replace(CLEAN, errors=(problem,))


@pytest.mark.parametrize(
    ("subject", "status"),
    [
        (CLEAN, Status.CLEAN),
        (skipping("not-applicable"), Status.CLEAN),
        (skipping("no-evidence"), Status.PARTIAL),
        (skipping("limit"), Status.PARTIAL),
        (skipping("crashed"), Status.PARTIAL),
        (UNREADABLE, Status.NOT_AUDITED),
        (LOST, Status.FINDINGS),
        (replace(LOST, errors=UNREADABLE.errors), Status.FINDINGS),
    ],
)
def test_status(subject: SubjectReport, status: Status) -> None:
    assert subject.status is status


@pytest.mark.parametrize(
    ("subjects", "fail_on", "code"),
    [
        ([CLEAN], Severity.ERROR, 0),
        ([], Severity.ERROR, 3),
        ([], None, 3),
        ([LOST], Severity.ERROR, 1),
        ([LOST], None, 0),
        ([UNREADABLE], None, 3),
        # A finding weighs more than a gap, wherever either stands.
        ([CLEAN, UNREADABLE, LOST], Severity.ERROR, 1),
        ([LOST, UNREADABLE], Severity.ERROR, 1),
        ([CLEAN, UNREADABLE], Severity.ERROR, 3),
        ([skipping("no-evidence")], Severity.ERROR, 0),
        ([skipping("limit")], Severity.ERROR, 3),
        ([CLEAN, skipping("crashed")], None, 3),
        ([replace(CLEAN, findings=(CONTEXT,))], Severity.ERROR, 0),
        ([replace(CLEAN, findings=(CONTEXT,))], Severity.WARNING, 1),
        ([replace(CLEAN, findings=(CONTEXT,))], Severity.INFO, 1),
        ([replace(LOST, errors=UNREADABLE.errors)], None, 3),
    ],
)
def test_exit_code(subjects: list[SubjectReport], fail_on: Severity | None, code: int) -> None:
    assert report(*subjects).exit_code(fail_on) == code


def test_an_unknown_architecture_is_pardoned_alone() -> None:
    unknown = failing("unknown-architecture")
    assert report(unknown).exit_code() == 3
    assert report(unknown).exit_code(allow_unknown=True) == 0
    assert report(unknown, UNREADABLE).exit_code(allow_unknown=True) == 3


def test_summary_counts_over_subjects() -> None:
    assert report(LOST, UNREADABLE, CLEAN).summary == Summary(
        errors=1, warnings=1, infos=0, not_audited=1, skipped=2
    )


def test_findings_and_skips_of_all_subjects() -> None:
    both = report(LOST, UNREADABLE, LOST)
    assert both.findings == (CONTEXT, WINDOW_LOST) * 2
    assert both.skips == LOST.skips * 2


def test_a_problem_is_what_its_error_says() -> None:
    error = MalformedError("cut", where=Where(offset=3))
    assert Problem.of(error) == Problem(code="malformed", message="cut", where=Where(offset=3))


def test_half_of_a_surrogate_pair_is_spelled_out() -> None:
    odd = replace(
        CLEAN,
        target="caf\udce9.gguf",
        findings=(replace(CONTEXT, actual={"\ud800": ["é\ud83d"]}),),
    )
    document = odd.to_dict()
    assert document["target"] == "caf\\xe9.gguf"
    assert json.loads(json.dumps(document))["findings"][0]["actual"] == {"\\ud800": ["é\\ud83d"]}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    )
)
def test_any_value_is_strict_json_in_utf8(value: object) -> None:
    odd = replace(CLEAN, findings=(replace(CONTEXT, actual=value),))
    text = json.dumps(odd.to_dict(), allow_nan=False, ensure_ascii=False)
    assert json.loads(text.encode()) == odd.to_dict()

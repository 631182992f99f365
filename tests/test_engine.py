from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from engine_subjects import (
    ALL,
    KEYS,
    TENSORS,
    audit,
    card,
    hit,
    rule,
    write_checkpoint,
    write_model,
)
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.errors import (
    AuditError,
    LimitError,
    MalformedError,
    ReferenceUnavailableError,
    SourceError,
)
from gguf_audit.finding import Finding, Skip
from gguf_audit.gguf import ValueType
from gguf_audit.limits import LIMITS
from gguf_audit.mandate import Mandate
from gguf_audit.reference import References
from gguf_audit.rule import Need, NoEvidence, Outcome, SetKey, Severity
from gguf_audit.targets import Located, Targets
from gguf_audit.testing import FieldValue, write_gguf
from gguf_audit.verdict import Problem, ReferenceFacts, Status
from gguf_audit.where import Where
from llama_recipes import PLAIN, recipe
from rule_subjects import GEMMA


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path)


CAUSE = rule("AA001", hit("cause", "a"))


# One audit as a whole


def test_a_sound_file_is_clean(model: Path) -> None:
    subject = audit(model)
    assert (subject.status, subject.kind, subject.architecture) == (Status.CLEAN, "model", "llama")
    assert (subject.findings, subject.errors, subject.reference) == ((), (), None)
    assert {skip.kind for skip in subject.skips} == {"not-applicable"}
    assert [(file.name, file.size_bytes) for file in subject.files] == [
        (str(model), model.stat().st_size)
    ]


def test_a_right_conversion_raises_no_alarm(model: Path, checkpoint: Path) -> None:
    subject = audit(model, against=checkpoint)
    assert (subject.findings, subject.errors) == ((), ())
    assert subject.reference == ReferenceFacts(
        id=str(checkpoint), revision=None, origin="folder", note="it says nothing of chat templates"
    )


def test_a_finding_has_what_its_rule_and_the_audit_know(model: Path) -> None:
    repair = SetKey(key="llama.context_length", value=1, present=True)
    said = replace(hit("wrong", "llama.context_length"), repair=repair, actual=8192)
    [finding] = audit(model, rule("AA001", said)).findings
    assert finding == Finding(
        rule="AA001",
        name="aa001",
        severity=Severity.ERROR,
        message="wrong",
        where=Where(file=str(model), key="llama.context_length"),
        expected=None,
        actual=8192,
        origin=None,
        consequences=(),
        repair=repair,
        fix=f"gguf-set-metadata {model} llama.context_length 1",
        authority="none",
        fingerprint=finding.fingerprint,
    )


def test_a_fingerprint_survives_rewording_and_renaming(tmp_path: Path) -> None:
    one = write_gguf(tmp_path / "one.gguf", KEYS, TENSORS)
    two = write_gguf(tmp_path / "two.gguf", KEYS, TENSORS)
    [first] = audit(one, rule("AA001", hit("wrong", "a"))).findings
    [second] = audit(two, rule("AA001", hit("still wrong", "a"))).findings
    [other] = audit(two, rule("AA001", hit("wrong", "b"))).findings
    assert first.fingerprint == second.fingerprint != other.fingerprint


# What could not be looked at


def test_a_crash_hides_nothing_else(model: Path) -> None:
    crashing = rule("AA000", hit("before", "z"), ZeroDivisionError("by zero"))
    report = audit_targets([str(model)], Mandate(rules={r.id: r for r in (crashing, CAUSE)}))
    [subject] = report.subjects
    assert [finding.rule for finding in subject.findings] == ["AA000", "AA001"]
    assert subject.skips == (
        Skip(rule="AA000", kind="crashed", reason="ZeroDivisionError: by zero"),
    )
    assert report.exit_code(None) == 3


def test_a_level_that_a_rule_does_not_declare_is_a_crash(model: Path) -> None:
    said = hit("declared", "z"), hit("not declared", "y", Severity.INFO), hit("after", "x")
    strict = replace(rule("AA000", *said), levels=(Severity.ERROR,))
    report = audit_targets([str(model)], Mandate(rules={r.id: r for r in (strict, CAUSE)}))
    [subject] = report.subjects
    assert [finding.message for finding in subject.findings] == ["declared", "cause"]
    reason = "ValueError: a finding of level info, which AA000 lacks"
    assert subject.skips == (Skip(rule="AA000", kind="crashed", reason=reason),)
    assert report.exit_code(None) == 3


def test_a_rule_that_never_ends_is_cut_off_and_the_audit_not_whole(model: Path) -> None:
    most = LIMITS.findings_of_rule
    endless = rule("AA000", *(hit(str(n), f"key.{n}") for n in range(most + 1)))
    report = audit_targets([str(model)], Mandate(rules={r.id: r for r in (endless, CAUSE)}))
    [subject] = report.subjects
    assert len(subject.findings) == most + 1, "the other rule's is among them"
    reason = f"more than {most} faults, the rest is not told"
    assert subject.skips == (Skip(rule="AA000", kind="limit", reason=reason),)
    assert report.exit_code(None) == 3


def test_levels_of_unpublished_figures_need_no_declaration(model: Path, tmp_path: Path) -> None:
    erring = replace(rule("AA000", hit("e"), conversion=True), levels=(Severity.ERROR,))
    subject = audit(model, erring, against=card(tmp_path, published=False))
    assert [finding.severity for finding in subject.findings] == [Severity.WARNING]
    assert subject.skips == ()


@pytest.mark.parametrize(
    ("said", "skip", "code"),
    [
        (
            NoEvidence("no tokenizer"),
            Skip(rule="AA001", kind="no-evidence", reason="no tokenizer"),
            0,
        ),
        (
            NoEvidence("odd type", kind="limit"),
            Skip(rule="AA001", kind="limit", reason="odd type"),
            3,
        ),
    ],
)
def test_skips(model: Path, said: Outcome | Exception, skip: Skip, code: int) -> None:
    rules = {"AA001": rule("AA001", said)}
    report = audit_targets([str(model)], Mandate(rules=rules))
    assert report.skips == (skip,)
    assert report.subjects[0].status is Status.PARTIAL
    assert report.exit_code() == code


def test_a_rule_that_leaves_something_out_has_looked_unless_it_is_named(model: Path) -> None:
    rules = {"AA001": rule("AA001", NoEvidence("the rest", kind="not-applicable"))}
    report = audit_targets([str(model)], Mandate(rules=rules))
    assert report.skips == (Skip(rule="AA001", kind="not-applicable", reason="the rest"),)
    assert report.subjects[0].status is Status.CLEAN
    named = audit_targets([str(model)], Mandate(rules=rules, insisted={"AA001"}))
    assert named.skips == (Skip(rule="AA001", kind="no-evidence", reason="the rest"),)
    assert (named.subjects[0].status, named.exit_code()) == (Status.PARTIAL, 0)


@pytest.mark.parametrize(
    ("error_class", "kind"),
    [
        (LimitError, "limit"),
        (MalformedError, "no-evidence"),
        (ReferenceUnavailableError, "no-evidence"),
        (SourceError, "no-evidence"),
    ],
)
def test_what_cannot_be_read_is_no_crash(
    model: Path, error_class: type[AuditError], kind: str
) -> None:
    error = error_class("tokenizer.json is cut", where=Where(file="tokenizer.json"))
    subject = audit(model, rule("ZZ001", error), rule("ZZ002", error), CAUSE)
    assert [skip.kind for skip in subject.skips] == [kind, kind]
    told = Problem(code=error.code, message=error.message, where=error.where)
    assert subject.errors == (told,)
    alone = audit(model, rule("ZZ001", error))
    assert (alone.status, alone.incomplete()) == (Status.NOT_AUDITED, True)


def test_a_broken_tokenizer_is_told_once(tmp_path: Path, checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").write_text("{}", "utf-8")
    keys = {**KEYS, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a"]}
    file = write_gguf(tmp_path / "model.gguf", keys)
    subject = audit(file, against=checkpoint, require=frozenset({"tokenizer"}))
    told = [("malformed", "tokenizer.json: model has to be an object")]
    assert [(error.code, error.message) for error in subject.errors] == told
    # Where no rule reads it, who requires it does.
    alone = audit(file, CAUSE, against=checkpoint, require=frozenset({"tokenizer"}))
    assert [(error.code, error.message) for error in alone.errors] == told


def test_what_is_required_of_no_reference_is_told_once(model: Path, tmp_path: Path) -> None:
    parts = frozenset({"reference", "tokenizer", "hub"})
    none = audit(model, CAUSE, require=parts)
    assert [error.message for error in none.errors] == [
        "--require hub,reference,tokenizer: no reference was given"
    ]
    nowhere = audit(model, CAUSE, against=tmp_path / "nowhere" / "at-all", require=parts)
    [error] = nowhere.errors
    assert error.message.startswith(f"{tmp_path}/nowhere/at-all: no such file or folder")
    assert (none.incomplete(), nowhere.incomplete()) == (True, True)


def test_rules_on_conversions_wait_for_a_reference(model: Path) -> None:
    [skip] = audit(model, rule("AA001", hit("x"), conversion=True)).skips
    assert (skip.kind, skip.reason) == ("not-applicable", "a reference is needed: give --against")


def test_rules_on_the_file_run_without_the_reference(model: Path, tmp_path: Path) -> None:
    comparing = rule("AA002", hit("x"), conversion=True)
    against = tmp_path / "nowhere" / "at-all"
    report = audit_targets(
        [str(model)], Mandate(against=str(against), rules={"AA001": CAUSE, "AA002": comparing})
    )
    [subject] = report.subjects
    assert [finding.rule for finding in subject.findings] == ["AA001"]
    assert subject.skips == (
        Skip(rule="AA002", kind="no-evidence", reason="no reference could be read"),
    )
    assert [error.code for error in subject.errors] == ["reference"]
    assert (report.exit_code(), report.exit_code(None)) == (1, 3)


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        (Need.HYPERPARAMETERS, "conversion of 'OddForCausalLM' isn't covered"),
        (Need.LAYOUT, "conversion of 'OddForCausalLM' isn't covered"),
    ],
)
def test_needs_that_are_not_met(model: Path, tmp_path: Path, need: Need, reason: str) -> None:
    against = card(tmp_path, published=True, architectures=["OddForCausalLM"])
    subject = audit(
        model,
        rule("AA001", hit("x"), conversion=True, needs=frozenset({need})),
        rule("AA002", hit("y"), conversion=True, needs=frozenset({Need.REFERENCE})),
        against=against,
    )
    assert subject.skips == (Skip(rule="AA001", kind="no-evidence", reason=reason),)
    assert [finding.rule for finding in subject.findings] == ["AA002"]
    assert [error.code for error in subject.errors] == ["unsupported"]


def test_a_refused_file_has_no_layout_to_compare(tmp_path: Path, checkpoint: Path) -> None:
    keys = {
        key: value for key, value in KEYS.items() if key != "llama.attention.layer_norm_rms_epsilon"
    }
    file = write_gguf(tmp_path / "model.gguf", keys, TENSORS)
    subject = audit(file, against=checkpoint)
    assert [finding.rule for finding in subject.findings] == ["ARCH006"]
    skips = {skip.rule: (skip.kind, skip.reason) for skip in subject.skips}
    assert skips["KV106"] == ("not-applicable", "llama.cpp refuses the file")
    assert subject.cache is None


@pytest.mark.parametrize("key", ["block_count", "context_length", "nextn_predict_layers"])
def test_a_wrong_type_crashes_no_rule(tmp_path: Path, checkpoint: Path, key: str) -> None:
    keys = {**KEYS, f"llama.{key}": (ValueType.INT64, 3)}
    subject = audit(write_gguf(tmp_path / "model.gguf", keys, TENSORS), against=checkpoint)
    assert [(finding.rule, finding.where.key) for finding in subject.findings] == [
        ("ARCH007", f"llama.{key}")
    ]
    assert "crashed" not in {skip.kind for skip in subject.skips}


def test_another_architecture_is_the_only_finding(tmp_path: Path, checkpoint: Path) -> None:
    keys = {"general.architecture": "gemma3", **GEMMA, "gemma3.context_length": 99}
    subject = audit(write_gguf(tmp_path / "model.gguf", keys), against=checkpoint)
    assert [finding.rule for finding in subject.findings] == ["ARCH005"]


def test_another_width_is_the_only_finding(model: Path, tmp_path: Path) -> None:
    wider = card(tmp_path, published=True, hidden_size=128, head_dim=32, num_hidden_layers=4)
    subject = audit(model, against=wider)
    assert [(each.rule, each.expected, each.actual) for each in subject.findings] == [
        ("ARCH011", 128, 64)
    ]
    assert subject.errors == ()
    assert subject.cache is not None
    assert (subject.cache.expected, subject.cache.ideal) == (None, None)


def test_a_width_that_the_tensors_do_not_have_is_a_wrong_key(
    tmp_path: Path, checkpoint: Path
) -> None:
    keys = {**KEYS, "llama.embedding_length": 128}
    subject = audit(write_gguf(tmp_path / "model.gguf", keys, TENSORS), against=checkpoint)
    assert "ARCH011" not in {finding.rule for finding in subject.findings}
    assert "llama.embedding_length" in {finding.where.key for finding in subject.findings}


def test_a_width_of_no_number_is_none(tmp_path: Path, checkpoint: Path) -> None:
    for value in ("64", True, [64, 64, 64]):
        keys: dict[str, FieldValue] = {**KEYS, "llama.embedding_length": value}
        subject = audit(write_gguf(tmp_path / "model.gguf", keys, TENSORS), against=checkpoint)
        assert "ARCH011" not in {finding.rule for finding in subject.findings}
        assert "crashed" not in {skip.kind for skip in subject.skips}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"hidden_size": 128}, "the reference is 128 elements wide, the file 64"),
        (
            {"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2"},
            "the reference becomes 'gemma2', the file is 'llama'",
        ),
    ],
)
def test_rules_that_could_not_compare_are_no_clean_audit(
    model: Path, tmp_path: Path, changed: dict[str, Json], why: str
) -> None:
    against = card(tmp_path, published=True, **changed)
    rules = {code: rule for code, rule in ALL.items() if code.startswith("KV")}
    report = audit_targets([str(model)], Mandate(against=against, rules=rules))
    [subject] = report.subjects
    assert [(error.code, error.message) for error in subject.errors] == [("reference", why)]
    assert report.exit_code(None) == 3
    # What compares nothing misses nothing.
    alone = {code: rule for code, rule in ALL.items() if code.startswith("GGUF")}
    report = audit_targets([str(model)], Mandate(against=against, rules=alone))
    assert report.exit_code() == 0


REQUIRE: list[tuple[str, bool, list[str]]] = [
    ("reference", False, ["--require reference: no reference was given"]),
    ("reference", True, []),
    ("template", True, ["--require template: no tokenizer_config.json in the folder"]),
    ("tokenizer", True, ["--require tokenizer: it says no ids"]),
    ("tokenizer", False, ["--require tokenizer: no reference was given"]),
]


@pytest.mark.parametrize(("part", "given", "messages"), REQUIRE)
def test_required_parts(
    model: Path, checkpoint: Path, part: str, given: bool, messages: list[str]
) -> None:
    against = checkpoint if given else None
    subject = audit(model, CAUSE, against=against, require=frozenset({part}))
    found = [error.message for error in subject.errors]
    assert [message.partition(":")[0] for message in found] == [
        message.partition(":")[0] for message in messages
    ]
    assert subject.incomplete() is bool(messages)


def test_an_unknown_architecture_is_not_audited(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "new.gguf", {"general.architecture": "brand-new"}, TENSORS)
    report = audit_targets([str(file)], Mandate(rules=ALL))
    [subject] = report.subjects
    assert [(finding.rule, finding.severity) for finding in subject.findings] == [
        ("ARCH001", Severity.WARNING)
    ]
    assert [(error.code, error.where) for error in subject.errors] == [
        ("unknown-architecture", Where(file=str(file), key="general.architecture"))
    ]
    assert (report.exit_code(), report.exit_code(allow_unknown=True)) == (3, 0)


def test_a_draft_that_reads_another_models_cache_is_audited(tmp_path: Path) -> None:
    keys = recipe("gemma4-assistant", PLAIN)
    [subject] = audit_targets(
        [str(write_gguf(tmp_path / "draft.gguf", keys))], Mandate(rules=ALL)
    ).subjects
    # An info says that nobody could measure it.
    assert [finding.rule for finding in subject.findings] == ["KV110"]
    assert subject.errors == ()
    assert subject.cache is not None
    assert (list(subject.cache.implied.stores()), subject.cache.bytes) == ([], ())


class _NoLevels(dict[str, Severity]):
    """Levels that nobody can read."""

    def get(self, key: str, default: object = None, /) -> NoReturn:
        del key, default
        raise ZeroDivisionError("by zero")


def test_a_fault_of_ours_in_one_file_leaves_the_others_audited(tmp_path: Path) -> None:
    good, lost = write_model(tmp_path), tmp_path / "lost.gguf"
    asked: dict[str, Any] = {
        "rules": {"AA001": CAUSE},
        "severities": _NoLevels(AA001=Severity.ERROR),
    }
    report = audit_targets([str(good), str(lost)], Mandate(**asked))
    [failed, unread] = report.subjects
    assert failed.status is Status.NOT_AUDITED
    assert failed.errors == (
        Problem(
            code="crashed",
            message="internal error: ZeroDivisionError: by zero (see --debug)",
            where=Where(file=str(good)),
        ),
    )
    assert [problem.code for problem in unread.errors] == ["source"]
    with pytest.raises(ZeroDivisionError):
        audit_targets([str(good)], Mandate(**asked, debug=True))


def test_a_fault_of_ours_in_one_target_leaves_the_others_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def located(places: Targets, target: str) -> Iterator[Located]:
        del places
        if target == "faulty":
            raise ZeroDivisionError("by zero")
        yield Located(target)

    monkeypatch.setattr(Targets, "locate", located)
    good = str(write_model(tmp_path))
    failed, sound = audit_targets(["faulty", good], Mandate(rules={})).subjects
    assert [problem.code for problem in failed.errors] == ["crashed"]
    assert failed.errors[0].message == "internal error: ZeroDivisionError: by zero (see --debug)"
    assert (sound.target, sound.errors) == (good, ())
    with pytest.raises(ZeroDivisionError):
        audit_targets(["faulty", good], Mandate(rules={}, debug=True))


def test_a_fault_of_ours_in_a_reference_hides_no_finding(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(references: References, reference: str) -> NoReturn:
        del references, reference
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(References, "open", opened)
    subject = audit(model, against=model)
    assert [(error.code, error.message) for error in subject.errors] == [
        ("reference", "internal error: ZeroDivisionError: by zero (see --debug)")
    ]
    with pytest.raises(ZeroDivisionError):
        audit_targets([str(model)], Mandate(against="x", rules={}, debug=True))


def test_what_is_no_file_in_a_reference_is_not_one_that_is_missing(
    model: Path, checkpoint: Path
) -> None:
    place = checkpoint / "generation_config.json"
    os.mkfifo(place)
    assert [error.code for error in audit(model, against=checkpoint).errors] == ["reference"]
    place.unlink()
    place.symlink_to("nowhere")
    assert [error.code for error in audit(model, against=checkpoint).errors] == ["reference"]

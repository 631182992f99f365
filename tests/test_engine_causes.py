from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine_subjects import (
    audit,
    card,
    hit,
    rule,
    write_checkpoint,
    write_model,
)
from gguf_audit.engine import audit_targets
from gguf_audit.limits import LIMITS
from gguf_audit.mandate import Mandate
from gguf_audit.rule import (
    Rule,
    Severity,
)
from gguf_audit.testing import write_gguf
from gguf_audit.verdict import SubjectReport
from rule_subjects import GEMMA, without


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path)


def told(subject: SubjectReport) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.rule, finding.consequences) for finding in subject.findings]


# One cause, one finding


def test_a_lost_window_is_one_finding(tmp_path: Path) -> None:
    lost = without(GEMMA, "gemma3.attention.sliding_window")
    file = write_gguf(tmp_path / "lost.gguf", {"general.architecture": "gemma3", **lost})
    config = {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "num_hidden_layers": 18,
        "max_position_embeddings": 32768,
        "hidden_size": 640,
        "intermediate_size": 2048,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
    }
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    [finding] = audit(file, against=tmp_path / "config.json").findings
    assert finding.rule == "KV103"
    assert finding.consequences == (
        "these layers also rotate with the global RoPE base 1000000 instead of their own 10000",
    )
    # By itself it can only be suspected.
    assert [found.rule for found in audit(file).findings] == ["KV107"]


CAUSE, OTHER = rule("AA001", hit("cause", "a")), rule("AA002", hit("other", "b"))


@pytest.mark.parametrize(
    ("rules", "findings"),
    [
        # The same key, whichever speaks first.
        (
            [CAUSE, rule("ZZ001", hit("effect", "a"), defers_to=("AA001",))],
            [("AA001", ("effect",))],
        ),
        (
            [rule("AA000", hit("effect", "a"), defers_to=("AA001",)), CAUSE],
            [("AA001", ("effect",))],
        ),
        # Another key; no key on the deferring side; no key on the other.
        (
            [CAUSE, rule("ZZ001", hit("mine", "b"), defers_to=("AA001",))],
            [("AA001", ()), ("ZZ001", ())],
        ),
        ([CAUSE, rule("ZZ001", hit("effect"), defers_to=("AA001",))], [("AA001", ("effect",))]),
        (
            [rule("AA001", hit("cause")), rule("ZZ001", hit("mine", "a"), defers_to=("AA001",))],
            [("AA001", ()), ("ZZ001", ())],
        ),
        # A rule that isn't deferred to, and one that has nothing to say.
        ([OTHER, rule("ZZ001", hit("mine"), defers_to=("AA001",))], [("AA002", ()), ("ZZ001", ())]),
        ([rule("AA001"), rule("ZZ001", hit("mine"), defers_to=("AA001",))], [("ZZ001", ())]),
        # A family; its last member; its own.
        (
            [OTHER, rule("ZZ001", hit("effect", "b"), defers_to=("AA",))],
            [("AA002", ("effect",))],
        ),
        (
            [rule("AA001", hit("effect", "b"), defers_to=("AA",)), OTHER],
            [("AA002", ("effect",))],
        ),
        (
            [
                CAUSE,
                rule("ZZ001", hit("effect", "b"), hit("mine", "c"), defers_to=("AA002",)),
                OTHER,
            ],
            [("AA001", ()), ("ZZ001", ()), ("AA002", ("effect",))],
        ),
        # Two effects; an effect of an effect.
        (
            [
                CAUSE,
                rule("ZZ001", hit("first", "a"), defers_to=("AA001",)),
                rule("ZZ002", hit("second", "a"), defers_to=("AA001",)),
            ],
            [("AA001", ("first", "second"))],
        ),
        (
            [
                CAUSE,
                rule("ZZ001", hit("first", "a"), defers_to=("AA001",)),
                rule("ZZ002", hit("second", "a"), defers_to=("ZZ001",)),
            ],
            [("AA001", ("first", "second"))],
        ),
        # A circle of a careless pack loses nothing.
        (
            [
                rule("YY001", hit("one", "a"), defers_to=("ZZ001",)),
                rule("ZZ001", hit("other", "a"), defers_to=("YY001",)),
            ],
            [("ZZ001", ("one",))],
        ),
    ],
)
def test_folding(
    model: Path, rules: list[Rule], findings: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert told(audit(model, *rules)) == findings


def test_thousands_of_hits_fold_in_no_time(model: Path) -> None:
    most = LIMITS.findings_of_rule
    many = [
        rule(f"ZZ{n:03}", *(hit("effect", f"k{n}.{i}") for i in range(most)), defers_to=("AA001",))
        for n in range(100)
    ]
    subject = audit(model, CAUSE, *many)
    assert len(subject.findings) == 100 * most + 1


# Severity


def test_what_is_not_published_warns_and_never_errs(model: Path, tmp_path: Path) -> None:
    found = rule("AA001", hit("wrong"), conversion=True)
    unpublished = card(tmp_path, published=False)
    [finding] = audit(model, found, against=unpublished).findings
    assert finding.severity is Severity.WARNING
    assert finding.consequences == (
        "the reference isn't a published configuration, so this is no error yet",
    )
    # The file alone is as wrong as ever, and so is what was no error before.
    alone = rule("AA001", hit("wrong"))
    assert [f.severity for f in audit(model, alone, against=unpublished).findings] == ["error"]
    info = rule("AA001", hit("so", level=Severity.INFO), conversion=True)
    [finding] = audit(model, info, against=unpublished).findings
    assert (finding.severity, finding.consequences) == (Severity.INFO, ())
    published = card(tmp_path, published=True)
    assert [f.severity for f in audit(model, found, against=published).findings] == ["error"]


def test_a_finding_is_as_severe_as_what_it_tells(model: Path, tmp_path: Path) -> None:
    # The file alone is wrong, and beside what isn't published it isn't better.
    alone = rule("ZZ001", hit("out of range", "a"), defers_to=("AA001",))
    found = rule("AA001", hit("changed", "a"), conversion=True)
    for published in (True, False):
        reference = card(tmp_path, published=published)
        [finding] = audit(model, found, alone, against=reference).findings
        assert (finding.rule, finding.severity) == ("AA001", Severity.ERROR)
        assert finding.consequences == ("out of range",)
    mild = rule("ZZ001", hit("so", "a", level=Severity.INFO), defers_to=("AA001",))
    [finding] = audit(model, found, mild, against=card(tmp_path, published=False)).findings
    assert (finding.severity, len(finding.consequences)) == (Severity.WARNING, 2)


@pytest.mark.parametrize("level", list(Severity))
def test_the_user_has_the_last_word_on_severity(
    model: Path, tmp_path: Path, level: Severity
) -> None:
    found = rule("AA001", hit("wrong"), conversion=True)
    unpublished = card(tmp_path, published=False)
    subject = audit(model, found, OTHER, against=unpublished, severities={"AA001": level})
    assert [(f.rule, f.severity) for f in subject.findings] == [
        ("AA001", level),
        ("AA002", Severity.ERROR),
    ]


def test_ignoring_a_cause_silences_its_echo_and_nothing_else(model: Path) -> None:
    cause = rule("AA001", hit("cause", "k"))
    echo = replace(rule("AA002", hit("echo", "k"), defers_to=("AA001",)), echoes=True)
    more = rule("AA003", hit("more", "k"), defers_to=("AA001",))
    [subject] = audit_targets(
        [str(model)],
        Mandate(rules={each.id: each for each in (echo, more)}, ignored={cause.id: cause}),
    ).subjects
    assert told(subject) == [("AA003", ())]

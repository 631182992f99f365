"""What an audit makes of a probe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gguf_audit import engine
from gguf_audit.finding import Skip
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.probes import llama_cpp
from gguf_audit.rule import Severity
from gguf_audit.runtime.measured import Allocated, Declined, Outcome, Probe
from gguf_audit.testing import write_gguf, write_split_gguf
from gguf_audit.verdict import SubjectReport
from gguf_audit_rules.run.probe_disagrees import RULE
from rule_subjects import GEMMA

MIB = 1 << 20
FIELDS = {"general.architecture": "gemma3", **GEMMA}
TENSORS = [(f"blk.{index}.attn_k.weight", (640, 256), "F16") for index in range(18)]


class Installed:
    """Stands for an installed llama.cpp and notes what it is asked."""

    def __init__(self, answer: Outcome | Absent) -> None:
        self.answer = answer
        self.asked: list[tuple[Path, tuple[int, ...]]] = []

    def probe(self, model: Path, lengths: Sequence[int]) -> Probe | Absent:
        self.asked.append((model, tuple(lengths)))
        if isinstance(self.answer, Absent):
            return self.answer
        return Probe(runtime="llama.cpp", outcomes=dict.fromkeys(lengths, self.answer))


def audit(
    monkeypatch: pytest.MonkeyPatch,
    path: Path,
    installed: Installed,
    *,
    lengths: tuple[int, ...] = (),
    probe: bool = True,
) -> tuple[SubjectReport, int]:
    monkeypatch.setattr(llama_cpp, "probe", installed.probe)
    rules = {RULE.id: RULE}
    report = engine.audit_targets([str(path)], Mandate(rules=rules, lengths=lengths, probe=probe))
    (subject,) = report.subjects
    return subject, report.exit_code()


def test_agreement_is_clean_and_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "gemma.gguf", FIELDS, TENSORS)
    installed = Installed(Allocated(bytes=111 * MIB))
    subject, code = audit(monkeypatch, path, installed, lengths=(32768,))
    assert installed.asked == [(path, (32768,))]
    assert (subject.findings, subject.skips, code) == ((), (), 0)
    assert subject.probe == Probe(runtime="llama.cpp", outcomes={32768: Allocated(bytes=111 * MIB)})


def test_two_lengths_unless_others_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "gemma.gguf", FIELDS, TENSORS)
    installed = Installed(Declined(message="no"))
    subject, code = audit(monkeypatch, path, installed)
    assert installed.asked == [(path, (4096, 32768))]
    assert [(finding.rule, finding.severity) for finding in subject.findings] == [
        ("RUN001", Severity.ERROR)
    ]
    assert code == 1


def test_without_being_asked_nobody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gguf(tmp_path / "gemma.gguf", FIELDS, TENSORS)
    installed = Installed(Declined(message="no"))
    subject, code = audit(monkeypatch, path, installed, probe=False)
    assert installed.asked == []
    reason = "asks an installed llama.cpp: give --probe"
    assert subject.skips == (Skip(rule="RUN001", kind="not-applicable", reason=reason),)
    assert (subject.probe, code) == (None, 0)


def test_asked_in_vain_is_not_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gguf(tmp_path / "gemma.gguf", FIELDS, TENSORS)
    subject, code = audit(monkeypatch, path, Installed(Absent("none is installed")))
    assert [(error.code, error.message) for error in subject.errors] == [
        ("probe", "none is installed")
    ]
    assert subject.skips == (Skip(rule="RUN001", kind="no-evidence", reason="none is installed"),)
    assert (subject.probe, code) == (None, 3)


def test_of_a_set_the_first_shard_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = write_split_gguf(tmp_path, FIELDS, TENSORS, shards=3)
    installed = Installed(Allocated(bytes=111 * MIB))
    _, code = audit(monkeypatch, shards[2], installed, lengths=(32768,))
    assert installed.asked == [(shards[0], (32768,))]
    assert code == 0


def test_a_vocabulary_makes_no_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {**FIELDS, "tokenizer.ggml.tokens": ["a", "b"]}
    path = write_gguf(tmp_path / "vocabulary.gguf", fields)
    installed = Installed(Declined(message="no"))
    subject, code = audit(monkeypatch, path, installed)
    assert installed.asked == []
    reason = "llama.cpp makes no context of this kind: vocabulary"
    assert subject.skips == (Skip(rule="RUN001", kind="not-applicable", reason=reason),)
    assert code == 0

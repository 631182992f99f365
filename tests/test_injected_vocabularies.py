"""Every fault of a vocabulary that we can think of, in conversions of our own checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from gguf_audit.engine import audit_targets
from gguf_audit.mandate import Mandate
from injected_tokenizer import FAULTS, RULES, told
from vocabulary_pairs import CHECKPOINTS, convert, write_checkpoint


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_right_conversion_is_silent(name: str, tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "hf", name)
    right = convert(checkpoint, tmp_path / "right.gguf")
    [report] = audit_targets([str(right)], Mandate(against=str(checkpoint), rules=RULES)).subjects
    assert [finding.message for finding in report.findings] == []
    assert [skip for skip in report.skips if skip.kind != "not-applicable"] == []


def test_every_fault_is_one_finding(tmp_path: Path) -> None:
    kinds: set[str] = set()
    wrong: list[str] = []
    for name in CHECKPOINTS:
        checkpoint = write_checkpoint(tmp_path / name, name)
        right = convert(checkpoint, tmp_path / "right.gguf")
        for each in told(name, right, str(checkpoint), tmp_path):
            kinds.add(each.fault.name)
            wrong += [] if each.wrong is None else [each.wrong]
    assert wrong == []
    # All but what only some architectures have.
    assert {fault.name for fault in FAULTS} - kinds <= {"flip add_sep", "lose add_sep"}

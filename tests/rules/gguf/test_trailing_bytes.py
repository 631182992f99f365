from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gguf_audit.engine import audit_targets
from gguf_audit.evidence import Model
from gguf_audit.formats.ggml_types import tensor_type
from gguf_audit.rule import Hit, Replace, Severity
from gguf_audit.subject import FileFacts
from gguf_audit.testing import FieldValue, TensorSpec, build_gguf
from gguf_audit.where import Where
from gguf_audit_rules.gguf.trailing_bytes import RULE, check
from rule_subjects import SETTINGS, gguf, model_of

KEYS: dict[str, FieldValue] = {"general.architecture": "llama"}
#: Two tensors of 128 and 68 bytes; the second one is padded to 96.
TWO = [TensorSpec("a", (32,)), TensorSpec("b", (17,))]


def longer(more: int, tensors: list[TensorSpec]) -> tuple[Model, FileFacts]:
    """Return a model whose file has more bytes than its header wants, and that file."""
    file = gguf(KEYS, tensors)
    facts = dataclasses.replace(file.files[0], size_bytes=file.files[0].size_bytes + more)
    return model_of(dataclasses.replace(file, files=(facts,))), facts


@pytest.mark.parametrize("more", [-200, -96, -28, 0])
def test_silent_up_to_the_last_padding(more: int) -> None:
    subject, _ = longer(more, TWO)
    assert list(check(subject, SETTINGS)) == []


@pytest.mark.parametrize("data", ["zeros", "none"])
def test_silent_for_a_header_alone(tmp_path: Path, data: str) -> None:
    for tensors in (TWO, []):
        made = build_gguf(KEYS, tensors, data="zeros" if data == "zeros" else "none")
        (tmp_path / "model.gguf").write_bytes(made)
        report = audit_targets([str(tmp_path / "model.gguf")], rules={RULE.id: RULE})
        assert [subject.findings for subject in report.subjects] == [()]


@pytest.mark.parametrize("more", [1, 1 << 20])
def test_fires_for_bytes_behind_the_last_tensor(more: int) -> None:
    subject, facts = longer(more, TWO)
    end = facts.data_offset + 224
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs to end at byte {end:,} with its last tensor, model.gguf has "
            f"{more:,} bytes more",
            where=Where(file="model.gguf", offset=end),
            expected=end,
            actual=end + more,
            level=Severity.WARNING,
            repair=Replace(),
        )
    ]


def test_fires_for_bytes_behind_a_header_alone(tmp_path: Path) -> None:
    # A program behind a vocabulary.
    file = tmp_path / "model.gguf"
    file.write_bytes(build_gguf(KEYS) + b"\x7fELF" * 64)
    [subject] = audit_targets([str(file)], rules={RULE.id: RULE}).subjects
    [finding] = subject.findings
    assert "with its header, " in finding.message
    assert finding.actual == file.stat().st_size


def test_what_ends_with_data_of_unknown_size_is_left_alone() -> None:
    unknown = TensorSpec("u", (7,), tensor_type(9999))
    last, _ = longer(4096, [*TWO, unknown])
    assert list(check(last, SETTINGS)) == []
    first, _ = longer(1 << 16, [unknown, dataclasses.replace(TWO[0], offset=4096)])
    assert len(list(check(first, SETTINGS))) == 1

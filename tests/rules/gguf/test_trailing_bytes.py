from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from gguf_audit.engine import audit_targets
from gguf_audit.formats.ggml_types import tensor_type
from gguf_audit.formats.gguf import read_gguf
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Hit, Replace, Severity
from gguf_audit.sources import MemorySource
from gguf_audit.testing import FieldValue, TensorSpec, build_gguf
from gguf_audit.where import Where
from gguf_audit_rules.gguf.trailing_bytes import RULE, check
from rule_subjects import SETTINGS, model_of

KEYS: dict[str, FieldValue] = {"general.architecture": "llama"}
#: Two tensors of 128 and 68 bytes; the second one is padded to 96.
TWO = [TensorSpec("a", (32,)), TensorSpec("b", (17,))]


def behind(tail: bytes, tensors: list[TensorSpec]) -> tuple[Hit, ...]:
    """Return what is said of a file that goes on like this."""
    source = MemorySource("model.gguf", build_gguf(KEYS, tensors) + tail)
    return tuple(
        each for each in check(model_of(read_gguf(source)), SETTINGS) if isinstance(each, Hit)
    )


@pytest.mark.parametrize("less", [-200, -96, -28, None])
def test_silent_up_to_the_last_padding(less: int | None) -> None:
    source = MemorySource("model.gguf", build_gguf(KEYS, TWO)[:less])
    assert list(check(model_of(read_gguf(source)), SETTINGS)) == []


@pytest.mark.parametrize("data", ["zeros", "none"])
def test_silent_for_a_header_alone(tmp_path: Path, data: str) -> None:
    for tensors in (TWO, []):
        made = build_gguf(KEYS, tensors, data="zeros" if data == "zeros" else "none")
        (tmp_path / "model.gguf").write_bytes(made)
        report = audit_targets([str(tmp_path / "model.gguf")], Mandate(rules={RULE.id: RULE}))
        assert [subject.findings for subject in report.subjects] == [()]


@pytest.mark.parametrize(
    ("tail", "what", "level"),
    [
        (b"\0", "1 zeros", Severity.WARNING),
        (b"\0" * (1 << 18), "262,144 zeros", Severity.WARNING),
        (b"x", "1 bytes, of no kind we know,", Severity.ERROR),
        # A long run of zeros hides nothing at its end.
        (b"\0" * (1 << 18) + b"x", "262,145 bytes, of no kind we know,", Severity.ERROR),
        (b"\x7fELF" * 64, "256 bytes, a program (ELF),", Severity.ERROR),
        (b"MZ" * 16, "32 bytes, a Windows program,", Severity.ERROR),
        (b"PK\x03\x04" * 16, "64 bytes, a zip archive,", Severity.ERROR),
        (b"\x80\x04}." * 16, "64 bytes, a Python pickle,", Severity.ERROR),
        (b"GGUF" * 16, "64 bytes, another GGUF file,", Severity.ERROR),
    ],
    ids=["zero", "zeros", "byte", "zeros-and-a-byte", "elf", "mz", "zip", "pickle", "gguf"],
)
def test_fires_for_bytes_behind_the_last_tensor(tail: bytes, what: str, level: Severity) -> None:
    end = len(build_gguf(KEYS, TWO))
    assert behind(tail, TWO) == (
        Hit(
            message=f"needs to end at byte {end:,} with its last tensor, model.gguf has {what} more",
            where=Where(file="model.gguf", offset=end),
            expected=end,
            actual=end + len(tail),
            unit="byte",
            level=level,
            repair=Replace(),
        ),
    )


def test_fires_for_bytes_behind_a_header_alone(tmp_path: Path) -> None:
    # A program behind a vocabulary.
    file = tmp_path / "model.gguf"
    file.write_bytes(build_gguf(KEYS) + b"\x7fELF" * 64)
    [subject] = audit_targets([str(file)], Mandate(rules={RULE.id: RULE})).subjects
    [finding] = subject.findings
    assert "with its header, " in finding.message
    assert finding.actual == file.stat().st_size


def test_what_ends_with_data_of_unknown_size_is_left_alone() -> None:
    unknown = TensorSpec("u", (7,), tensor_type(9999))
    assert behind(b"x" * 4096, [*TWO, unknown]) == ()
    assert len(behind(b"x" * (1 << 16), [unknown, replace(TWO[0], offset=4096)])) == 1

from __future__ import annotations

import pytest

from gguf_audit.formats.gguf import read_gguf
from gguf_audit.rule import Hit, Replace, Severity
from gguf_audit.sources import MemorySource
from gguf_audit.testing import FieldValue, TensorSpec, build_gguf, make_gguf
from gguf_audit.where import Where
from gguf_audit_rules.gguf.padding_not_zero import check
from rule_subjects import SETTINGS, model_of

KEYS: dict[str, FieldValue] = {"general.architecture": "llama"}
TENSORS = [TensorSpec("a", (32,)), TensorSpec("b", (17,))]
HEADER = make_gguf(KEYS, TENSORS, alignment=4096).files[0]


def padded_with(filling: bytes, *, at: int = 0) -> bytes:
    """Return a file whose header is padded so."""
    made = bytearray(build_gguf(KEYS, TENSORS, alignment=4096))
    start = HEADER.header_bytes + at
    made[start : start + len(filling)] = filling
    return bytes(made)


def outcomes(data: bytes) -> list[object]:
    return list(check(model_of(read_gguf(MemorySource("model.gguf", data))), SETTINGS))


@pytest.mark.parametrize("alignment", [8, 32, 4096])
def test_silent_for_zeros(alignment: int) -> None:
    made = build_gguf(KEYS, TENSORS, alignment=alignment)
    assert outcomes(made) == []
    # Cut short within the padding, and behind the header.
    assert outcomes(made[: HEADER.header_bytes]) == []


def test_silent_without_tensors() -> None:
    assert outcomes(build_gguf(KEYS) + b"\x7fELF") == []


@pytest.mark.parametrize("at", [0, 9])
@pytest.mark.parametrize(
    ("filling", "kind", "level"),
    [
        (b"x", "of no kind we know", Severity.WARNING),
        (b"\x7fELF" + b"A" * 16, "a program (ELF)", Severity.ERROR),
        (b"PK\x03\x04" + b"A" * 16, "a zip archive", Severity.ERROR),
        (b"MZ\x90\0\x03", "a Windows program", Severity.ERROR),
    ],
)
def test_fires(filling: bytes, kind: str, level: Severity, at: int) -> None:
    start = HEADER.header_bytes + at
    assert outcomes(padded_with(filling, at=at)) == [
        Hit(
            message=f"needs zeros up to the data at byte 4,096, model.gguf has {len(filling)} "
            f"bytes, {kind}, from byte {start} on",
            where=Where(file="model.gguf", offset=start),
            expected=0,
            actual=len(filling),
            unit="byte",
            level=level,
            repair=Replace(),
        )
    ]


def test_fires_for_the_last_byte() -> None:
    size = HEADER.data_offset - HEADER.header_bytes
    [hit] = outcomes(padded_with(b"x", at=size - 1))
    assert isinstance(hit, Hit)
    assert hit.where == Where(file="model.gguf", offset=4095)

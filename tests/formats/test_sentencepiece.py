"""A SentencePiece model is read within its bounds, and nothing else is taken for one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_audit import limits
from gguf_audit.checkpoint import SentencePiece
from gguf_audit.errors import AuditError, LimitError, MalformedError
from gguf_audit.formats import _sentencepiece
from gguf_audit.formats._sentencepiece import read_sentencepiece
from gguf_audit.sources import MemorySource
from sentencepiece_models import Piece, message, number, piece, sentencepiece


def _read(data: bytes) -> SentencePiece:
    return read_sentencepiece(MemorySource("tokenizer.model", data))


def test_reads_pieces_and_what_a_converter_takes_from_the_specs() -> None:
    data = sentencepiece(
        [Piece("<unk>", 0.0, 2), Piece("<0x0A>", 0.0, 6), Piece("▁é", -1.5)],
        model_type=2,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        charsmap=b"\x00\x01",
    )
    assert _read(data) == SentencePiece(
        texts=["<unk>", "<0x0A>", "▁é"],
        scores=[0.0, 0.0, -1.5],
        types=[2, 6, 1],
        model_type=2,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        precompiled_charsmap=b"\x00\x01",
    )


def test_defaults_are_those_of_the_message() -> None:
    assert _read(message(1, b"")) == SentencePiece(texts=[""], scores=[0.0], types=[1])


def test_unknown_fields_are_passed_over() -> None:
    odd = number(9, 3) + struct.pack("<Bd", 10 << 3 | 1, 1.0) + struct.pack("<Bf", 11 << 3 | 5, 1.0)
    data = odd + message(1, piece(Piece("a", 1.0)) + odd) + message(2, odd) + odd
    assert _read(data) == SentencePiece(texts=["a"], scores=[1.0], types=[1])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x0a", "a number without an end at byte 1"),
        (b"\x0a" + b"\xff" * 20, "a number without an end at byte 11"),
        (b"\x0a\x05abc", "5 bytes where 3 are left at byte 2"),
        (b"\x0b", "wire type 3 at byte 1"),
        (message(1, message(1, b"a\xff")), "no UTF-8: invalid start byte at byte 5"),
        (message(1, b"\x0a\x7fabc"), "127 bytes where 3 are left at byte 4"),
    ],
)
def test_other_bytes_are_malformed(data: bytes, why: str) -> None:
    with pytest.raises(MalformedError) as raised:
        _read(data)
    assert raised.value.message == f"tokenizer.model is no SentencePiece model: {why}"


def test_a_model_without_pieces_is_none() -> None:
    for data in (b"", b"\x28\x01" * 3):
        with pytest.raises(MalformedError, match="it has no pieces"):
            _read(data)


def test_more_pieces_than_any_model_has_are_over_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sentencepiece, "LIMITS", limits.LIMITS._replace(vocabulary_tokens=2))
    with pytest.raises(LimitError, match="more than 2 pieces"):
        _read(message(1, b"") * 3)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_model_or_an_error(data: bytes) -> None:
    try:
        _read(data)
    except AuditError:
        return

"""Writes a SentencePiece model as far as a converter reads one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Piece", "message", "number", "piece", "sentencepiece"]


class Piece(NamedTuple):
    """Text, score and type of a piece: 1 normal, 2 unknown, 3 control, 6 byte."""

    text: str
    score: float = 0.0
    type: int = 1


def sentencepiece(
    pieces: Sequence[Piece],
    *,
    model_type: int = 1,
    add_dummy_prefix: bool = True,
    remove_extra_whitespaces: bool = True,
    charsmap: bytes = b"",
) -> bytes:
    """Return a model of these pieces."""
    normalizer = number(3, int(add_dummy_prefix)) + number(4, int(remove_extra_whitespaces))
    if charsmap:
        normalizer = message(2, charsmap) + normalizer
    return (
        b"".join(message(1, piece(each)) for each in pieces)
        + message(2, number(3, model_type))
        + message(3, normalizer)
    )


def piece(each: Piece) -> bytes:
    """Return one piece; a normal one doesn't say so."""
    score = struct.pack("<Bf", 2 << 3 | 5, each.score)
    return (
        message(1, each.text.encode()) + score + (number(3, each.type) if each.type != 1 else b"")
    )


def message(field: int, content: bytes) -> bytes:
    """Return a field that holds bytes."""
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    """Return a field that holds an integer."""
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)

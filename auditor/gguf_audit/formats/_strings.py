"""Strings one after the other, each behind its 64-bit length."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import repeat
from struct import Struct, pack
from typing import Final, Literal, NamedTuple

from gguf_audit.fingerprints import Fingerprints

__all__ = ["LENGTH_BYTES", "ByteOrder", "Part", "StringIndex", "Strings", "whole_strings"]

ByteOrder = Literal["little", "big"]

#: A length in front of every string, key and name.
LENGTH_BYTES: Final = 8
_LENGTHS: Final = {"little": Struct("<Q"), "big": Struct(">Q")}


class Strings(NamedTuple):
    """Some strings that follow each other."""

    texts: Sequence[bytes]
    #: Offset of each length from where they were looked for.
    begins: Sequence[int]
    #: Offset of the end of the last one.
    end: int


def whole_strings(data: bytes, most: int, order: ByteOrder) -> Strings:
    """Return the strings that are wholly in ``data``, no more than ``most``."""
    unpack = _LENGTHS[order].unpack_from
    texts: list[bytes] = []
    begins: list[int] = []
    at, size = 0, len(data)
    # A vocabulary has 262,144 of them, and whoever opens its file goes through all.
    for _ in repeat(None, most):
        begin = at + LENGTH_BYTES
        if begin > size:
            break
        end = begin + unpack(data, at)[0]
        if end > size:
            break
        texts.append(data[begin:end])
        begins.append(at)
        at = end
    return Strings(texts, begins, at)


class Part(NamedTuple):
    """Some strings of an array that follow each other."""

    #: Index of the first one.
    first: int
    #: From the start of the array, where they begin and end.
    start: int
    stop: int
    #: Offsets of their lengths from ``start``.
    begins: Sequence[int]

    def where(self, index: int) -> slice:
        """Return where in the bytes of this part one of its strings stands."""
        last = index + 1 == len(self.begins)
        stop = self.stop - self.start if last else self.begins[index + 1]
        return slice(self.begins[index] + LENGTH_BYTES, stop)

    def at(self, offset: int) -> int | None:
        """Return which string's length stands at an offset from ``start``, ``None`` if none's."""
        index = bisect_left(self.begins, offset)
        return index if index < len(self.begins) and self.begins[index] == offset else None


class StringIndex:
    """Where the strings of an array begin, and what tells equal ones: 12 bytes for each."""

    __slots__ = ("fingerprints", "parts")

    def __init__(self, strings: Iterable[Strings]) -> None:
        """Take all strings, some at a time, as they follow each other."""
        self.fingerprints = Fingerprints()
        self.parts: list[Part] = []
        first = start = 0
        for texts, begins, end in strings:
            self.fingerprints.extend(texts)
            packed = array("I", pack(f"{len(begins)}I", *begins))
            self.parts.append(Part(first, start, start + end, packed))
            first += len(texts)
            start += end

"""Strings one after the other, each behind its 64-bit length.

A vocabulary has 262,144 of them, and whoever opens its file goes through all: what can be
done without a loop of ours is, which takes half the time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from struct import Struct, pack
from typing import Final, Literal, NamedTuple

from gguf_audit.fingerprints import Fingerprints

__all__ = ["LENGTH_BYTES", "ByteOrder", "Part", "StringIndex", "Strings", "whole_strings"]

ByteOrder = Literal["little", "big"]

#: A length in front of every string, key and name.
LENGTH_BYTES: Final = 8
_LENGTHS: Final = {"little": Struct("<Q"), "big": Struct(">Q")}
#: Five of the seven zeros in a length below 256: more are searched for more slowly.
_ZEROS: Final = bytes(5)
#: The length of a part between two of them, which is the other two zeros, a string and the
#: next one's length -> bytes of a length and that string; 0 where it can be none.
_STEPS: Final = bytes(size + len(_ZEROS) if 3 < size < 251 else 0 for size in range(256))
#: The length of a string -> the same.
_WANTED: Final = bytes(size + LENGTH_BYTES if size < 248 else 0 for size in range(256))


class Strings(NamedTuple):
    """Some strings that follow each other."""

    texts: Sequence[bytes]
    #: Offset of each length from where they were looked for.
    begins: Sequence[int]
    #: Offset of the end of the last one.
    end: int


def whole_strings(data: bytes, most: int, order: ByteOrder) -> Strings:
    """Return the strings that are wholly in ``data``, no more than ``most``."""
    texts, begins = _short_strings(data, most) if order == "little" else ([], [0])
    unpack = _LENGTHS[order].unpack_from
    at, left, size = begins.pop(), most - len(texts), len(data)
    last = size - LENGTH_BYTES
    while left and at <= last:
        begin = at + LENGTH_BYTES
        stop = begin + unpack(data, at)[0]
        if stop > size:
            break
        texts.append(data[begin:stop])
        begins.append(at)
        at = stop
        left -= 1
    return Strings(texts, begins, at)


def _short_strings(data: bytes, most: int) -> tuple[list[bytes], list[int]]:
    """Return the first strings if all in ``data`` are short, and where they begin and end.

    It is split at zeros, as behind every length. Texts can have such zeros too: the result
    holds if there are seven wherever there are five, and if each part is as long as the
    byte says that it begins behind.
    """
    parts = data.split(_ZEROS, most)
    try:
        steps = bytes(map(len, parts[1:-1])).translate(_STEPS)
    except ValueError:
        return [], [0]
    begins = list(accumulate(steps, initial=0))
    if len(steps) < 2 or len(parts[0]) != 1 or 0 in steps:
        return [], [0]
    lengths = bytes(itemgetter(*begins[:-1])(data))
    zeros = data.count(bytes(7), 0, begins[-1] + LENGTH_BYTES)
    if lengths.translate(_WANTED) != steps or zeros != len(steps) + 1:
        return [], [0]
    return [part[2:-1] for part in parts[1:-1]], begins


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

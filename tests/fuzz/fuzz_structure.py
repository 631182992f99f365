"""Changes GGUF headers by their structure: whole keys, whole tensor infos, whole numbers.

What changes bytes alone hardly ever gets past a count; this drops, repeats, moves and
exchanges what the header lists and keeps its two counts true, or lies in them on purpose.
"""

from __future__ import annotations

import functools
import itertools
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gguf_audit.errors import AuditError
from gguf_audit.formats.gguf import read_gguf
from gguf_audit.gguf import ValueType
from gguf_audit.sources import MemorySource
from gguf_audit.testing import FieldValue, TensorSpec, build_gguf
from recipes import read_recipe

__all__ = ["mutated", "shortened"]

#: Of a seed: enough for two blocks of any of our models.
ITEMS, TENSORS = 12, 40
PREFIX = struct.Struct("<4sIQQ")
NUMBERS = (
    *(0, 1, 2, 7, 8, 31, 32, 33, 255, 256, 4096, 65_535, 131_072),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**61, 2**63 - 1, 2**63, 2**64 - 32, 2**64 - 1),
)
#: Bits of floats that are no numbers, or none that anything can be divided by.
FLOATS = (0x7FC00000, 0x7F800000, 0xFF800000, 0x80000000, 0x00000001, 0x7F7FFFFF)


def shortened(name: str) -> bytes:
    """Return a fixture's header with short arrays, few tensors and no data."""
    recipe = read_recipe(name)
    fields = {key: _cut(value) for key, value in recipe.fields.items()}
    tensors = [
        TensorSpec(spec.name, spec.shape, spec.type, offset=spec.offset)
        for spec in recipe.tensors[:TENSORS]
    ]
    return build_gguf(fields, tensors, data="none")


def _cut(value: FieldValue) -> FieldValue:
    match value:
        case (ValueType() as type_, list() as items):
            return type_, items[:ITEMS]
        case list():
            return value[:ITEMS]
        case _:
            return value


@dataclass(frozen=True, slots=True)
class _Parts:
    """A header taken apart: its keys and its tensor infos, each as it is stored."""

    version: int
    keys: tuple[bytes, ...]
    infos: tuple[bytes, ...]
    rest: bytes

    def joined(self, *, extra_keys: int = 0, extra_tensors: int = 0) -> bytes:
        tensors, keys = len(self.infos) + extra_tensors, len(self.keys) + extra_keys
        head = PREFIX.pack(b"GGUF", self.version, max(0, tensors), max(0, keys))
        return b"".join((head, *self.keys, *self.infos, self.rest))


@functools.lru_cache(maxsize=256)
def _taken_apart(data: bytes) -> _Parts | None:
    try:
        file = read_gguf(MemorySource("seed", data)).files[0]
    except AuditError:
        return None
    if file.byte_order != "little":
        return None
    infos = [tensor.info_offset for tensor in file.tensors]
    starts = [field.offset for field in file.fields if field.offset is not None]
    ends = [*starts, infos[0] if infos else file.header_bytes]
    keys = tuple(data[a:b] for a, b in itertools.pairwise(ends))
    infos.append(file.header_bytes)
    tensors = tuple(data[a:b] for a, b in itertools.pairwise(infos))
    return _Parts(file.version, keys, tensors, data[file.header_bytes :])


def mutated(data: bytes, other: bytes, seed: int) -> bytes | None:
    """Return an input changed by its structure, ``None`` where it has none."""
    parts = _taken_apart(data)
    if parts is None:
        return None
    chance = random.Random(seed)  # noqa: S311 - a fuzzer's choice, no secret
    for _ in range(chance.randint(1, 4)):
        keys, infos = list(parts.keys), list(parts.infos)
        change = chance.choice(_CHANGES)
        change(chance, keys if chance.random() < 0.6 else infos, _taken_apart(other))
        parts = _Parts(parts.version, tuple(keys), tuple(infos), parts.rest)
    lie = chance.random() < 0.05
    return parts.joined(
        extra_keys=chance.choice((-1, 1, 2**40)) if lie else 0,
        extra_tensors=chance.choice((-1, 1, 2**40)) if lie else 0,
    )


def _drop(chance: random.Random, items: list[bytes], other: _Parts | None) -> None:
    del other
    if items:
        del items[chance.randrange(len(items))]


def _repeat(chance: random.Random, items: list[bytes], other: _Parts | None) -> None:
    del other
    if items:
        items.insert(chance.randrange(len(items) + 1), chance.choice(items))


def _swap(chance: random.Random, items: list[bytes], other: _Parts | None) -> None:
    del other
    if len(items) > 1:
        a, b = chance.sample(range(len(items)), 2)
        items[a], items[b] = items[b], items[a]


def _exchange(chance: random.Random, items: list[bytes], other: _Parts | None) -> None:
    """Take a key, or an info, out of another input."""
    if other is not None and items:
        pool: Sequence[bytes] = other.keys if chance.random() < 0.6 else other.infos
        if pool:
            items[chance.randrange(len(items))] = chance.choice(pool)


def _number(chance: random.Random, items: list[bytes], other: _Parts | None) -> None:
    """Put another number in: at the end of an item, where its value is, or anywhere."""
    del other
    if not items:
        return
    at = chance.randrange(len(items))
    item = bytearray(items[at])
    width = chance.choice((1, 2, 4, 4, 8, 8))
    if len(item) < width:
        return
    number = chance.choice(NUMBERS if width != 4 else (*NUMBERS, *FLOATS)) % (1 << 8 * width)
    last = len(item) - width
    place = last if chance.random() < 0.5 else chance.randint(0, last)
    item[place : place + width] = number.to_bytes(width, "little")
    items[at] = bytes(item)


def _text(chance: random.Random, items: list[bytes], other: _Parts | None) -> None:
    """Change a byte: of a name, most often."""
    del other
    if items:
        at = chance.randrange(len(items))
        item = bytearray(items[at])
        item[chance.randrange(len(item))] = chance.choice(b"\0\x1b0129.abz_\xff")
        items[at] = bytes(item)


_Change = Callable[[random.Random, list[bytes], _Parts | None], None]
_CHANGES: tuple[_Change, ...] = (_drop, _repeat, _swap, _exchange, _number, _number, _text)

"""Cuts keys out of real GGUF files, byte by byte and without any reader but its own.

    operate(model, broken, remove={"gemma3.attention.sliding_window"})
    operate(model, broken, replace={"gemma3.context_length": 131072})

The header is written again around the cut, tensor data is copied as it is to where the
shorter header lets it begin. Little-endian files of version 2 and 3.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["cut_end", "operate"]

#: Type of a metadata value -> its form; 8 is a string, 9 an array (ggml/include/gguf.h).
FORMS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
STRING, ARRAY, UINT32 = 8, 9, 4
ALIGNMENT = "general.alignment"
PREFIX = struct.Struct("<4sIQQ")


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a key and its value lie in the file."""

    key: str
    type: int
    start: int
    value_start: int
    end: int


def operate(
    source: Path,
    target: Path,
    *,
    remove: Collection[str] = (),
    replace: Mapping[str, float] | None = None,
) -> Path:
    """Write a copy without some keys, and with other numbers for others.

    KeyError for a key that isn't there, TypeError for one that holds no number.
    """
    changes = dict(replace or {})
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        magic, version, tensors, count = PREFIX.unpack_from(data)
        if magic != b"GGUF":
            raise ValueError(f"{source} is no GGUF file")
        entries = list(_entries(data, count))
        if missing := {*remove, *changes} - {entry.key for entry in entries}:
            raise KeyError(*missing)
        infos_start = entries[-1].end if entries else PREFIX.size
        infos_end = _skip_infos(data, infos_start, tensors)
        alignment = _alignment(data, entries)
        kept = [entry for entry in entries if entry.key not in remove]
        parts = [PREFIX.pack(magic, version, tensors, len(kept))]
        parts += [_rewritten(data, entry, changes) for entry in kept]
        parts.append(data[infos_start:infos_end])
        header = b"".join(parts)
        data_start = _padded(infos_end, alignment)
        with target.open("wb") as copy:
            copy.write(header.ljust(_padded(len(header), alignment), b"\0"))
            file.seek(data_start)
            shutil.copyfileobj(file, copy, 1 << 22)
    return target


def cut_end(source: Path, target: Path, missing_bytes: int) -> Path:
    """Write a copy without its last bytes."""
    shutil.copyfile(source, target)
    os.truncate(target, target.stat().st_size - missing_bytes)
    return target


def _entries(data: mmap.mmap, count: int) -> Iterator[_Entry]:
    position = PREFIX.size
    for _ in range(count):
        start = position
        position = _skip_string(data, position)
        key = data[start + 8 : position].decode()
        type_ = _number(data, position)
        value_start = position + 4
        position = _skip_value(data, value_start, type_)
        yield _Entry(key, type_, start, value_start, position)


def _skip_value(data: mmap.mmap, position: int, type_: int) -> int:
    if type_ == STRING:
        return _skip_string(data, position)
    if type_ != ARRAY:
        return position + struct.calcsize(FORMS[type_])
    item, count = struct.unpack_from("<IQ", data, position)
    position += 12
    if item in FORMS:
        return position + int(count) * struct.calcsize(FORMS[item])
    for _ in range(count):
        position = _skip_value(data, position, item)
    return position


def _skip_string(data: mmap.mmap, position: int) -> int:
    (length,) = struct.unpack_from("<Q", data, position)
    return position + 8 + int(length)


def _skip_infos(data: mmap.mmap, position: int, count: int) -> int:
    for _ in range(count):
        position = _skip_string(data, position)
        dimensions = _number(data, position)
        # Dimensions are 64-bit; type and offset follow them.
        position += 4 + 8 * dimensions + 4 + 8
    return position


def _alignment(data: mmap.mmap, entries: Collection[_Entry]) -> int:
    for entry in entries:
        if entry.key == ALIGNMENT and entry.type == UINT32:
            return _number(data, entry.value_start)
    return 32


def _rewritten(data: mmap.mmap, entry: _Entry, changes: Mapping[str, float]) -> bytes:
    if entry.key not in changes:
        return data[entry.start : entry.end]
    if entry.type not in FORMS:
        raise TypeError(f"{entry.key} holds no number")
    value = struct.pack(FORMS[entry.type], changes[entry.key])
    return data[entry.start : entry.value_start] + value


def _number(data: mmap.mmap, position: int) -> int:
    (number,) = struct.unpack_from("<I", data, position)
    return int(number)


def _padded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment

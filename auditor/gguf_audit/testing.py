"""Writes small, exact GGUF files: for tests, and for authors of rule packs.

    build_gguf({"general.architecture": "llama", "llama.block_count": 1},
               [("token_embd.weight", (64, 32), "F16")])

Values get the types that gguf-py's writer would give them; ``(ValueType.UINT64, 5)``
or ``(ValueType.INT32, [1, 2])`` states another one. Nothing is checked beyond what
has to be written down, so that wrong files can be made too. Big models cost nothing:
``write_gguf`` leaves a hole where tensor data would be, and ``make_gguf`` needs no
file at all.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from gguf_audit.errors import SourceError
from gguf_audit.extents import padded, tensor_bytes
from gguf_audit.formats.ggml_types import TYPES_BY_NAME, tensor_type
from gguf_audit.formats.gguf import read_gguf
from gguf_audit.gguf import Gguf, Scalar, TensorType, ValueType

__all__ = [
    "FieldValue",
    "HoleSource",
    "TensorSpec",
    "Typed",
    "build_gguf",
    "make_gguf",
    "split_gguf",
    "write_gguf",
    "write_split_gguf",
]

ByteOrder = Literal["little", "big"]
Data = Literal["zeros", "none"]

#: A scalar or a string (``bytes`` for one that isn't UTF-8), or a list of them, or a
#: list of such lists.
Plain = Scalar | bytes | Sequence["Plain"]
#: ``(type, value)``; with a list, the type of its items.
Typed = tuple[ValueType, Plain]
FieldValue = Plain | Typed
#: Pairs where a key shall stand twice, or isn't UTF-8.
FieldValues = (
    Mapping[str, FieldValue]
    | list[tuple[str | bytes, FieldValue]]
    | tuple[tuple[str | bytes, FieldValue], ...]
)

_FORMS = {
    ValueType.UINT8: "B",
    ValueType.INT8: "b",
    ValueType.UINT16: "H",
    ValueType.INT16: "h",
    ValueType.UINT32: "I",
    ValueType.INT32: "i",
    ValueType.FLOAT32: "f",
    ValueType.BOOL: "B",
    ValueType.UINT64: "Q",
    ValueType.INT64: "q",
    ValueType.FLOAT64: "d",
}


class TensorSpec(Struct, frozen=True):
    """A tensor to write, with what a plain tuple can't say."""

    name: str | bytes
    #: First dimension contiguous, as in the file.
    shape: Sequence[int]
    #: Name, id or type.
    type: str | int | TensorType = "F32"
    #: Its bytes; zeros where there are none.
    data: bytes | None = None
    #: Offset to write down instead of the right one.
    offset: int | None = None

    @property
    def tensor_type(self) -> TensorType:
        """The type that ``type`` names; ValueError where none has that name."""
        match self.type:
            case TensorType():
                return self.type
            case int():
                return tensor_type(self.type)
            case str():
                found = TYPES_BY_NAME.get(self.type.upper())
                if found is None:
                    raise ValueError(f"no tensor type is called {self.type!r}")
                return found

    @property
    def size_bytes(self) -> int:
        """Bytes of its data; 0 for a type or a shape that has no size."""
        if self.data is not None:
            return len(self.data)
        return tensor_bytes(tuple(self.shape), self.tensor_type) or 0


Tensors = Iterable[TensorSpec | tuple[str, Sequence[int], str | int | TensorType]]


def build_gguf(
    fields: FieldValues = (),
    tensors: Tensors = (),
    *,
    version: int = 3,
    byte_order: ByteOrder = "little",
    alignment: int | None = None,
    data: Data = "zeros",
) -> bytes:
    """Return a GGUF file; ``data="none"`` ends it with its header.

    ``alignment`` is by default what ``general.alignment`` in ``fields`` says, else 32;
    another one is written down as that key unless ``fields`` has it.
    """
    header, placed, size = _laid_out(
        fields, tensors, version=version, byte_order=byte_order, alignment=alignment
    )
    if data == "none":
        return header
    content = bytearray(size)
    content[: len(header)] = header
    for start, stored in placed:
        content[start : start + len(stored)] = stored
    return bytes(content)


def write_gguf(
    path: str | os.PathLike[str],
    fields: FieldValues = (),
    tensors: Tensors = (),
    *,
    version: int = 3,
    byte_order: ByteOrder = "little",
    alignment: int | None = None,
) -> Path:
    """Write a GGUF file whose tensor data is a hole, however big, and return its path.

    Only the header and what ``TensorSpec.data`` gives takes room on the disk.
    """
    header, placed, size = _laid_out(
        fields, tensors, version=version, byte_order=byte_order, alignment=alignment
    )
    target = Path(path)
    with target.open("wb") as file:
        file.write(header)
        for start, stored in placed:
            file.seek(start)
            file.write(stored)
        file.truncate(size)
    return target


class HoleSource:
    """A ByteSource that begins with given bytes and goes on with zeros."""

    def __init__(self, name: str, head: bytes, size: int) -> None:
        self.name = name
        self.size = size
        self._head = head

    def read(self, start: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``start``; SourceError otherwise."""
        if start < 0 or length < 0 or start + length > self.size:
            raise SourceError(f"{length} bytes at {start} are not in {self.size}")
        return self._head[start : start + length].ljust(length, b"\0")

    def close(self) -> None:
        """Do nothing: memory isn't opened."""


def make_gguf(
    fields: FieldValues = (),
    tensors: Tensors = (),
    *,
    name: str = "model.gguf",
    version: int = 3,
    byte_order: ByteOrder = "little",
    alignment: int | None = None,
) -> Gguf:
    """Return what reading such a file gives, real dimensions included, without a file."""
    header, _, size = _laid_out(
        fields, tensors, version=version, byte_order=byte_order, alignment=alignment
    )
    return read_gguf(HoleSource(name, header, size))


def split_gguf(
    fields: Mapping[str, FieldValue],
    tensors: Tensors,
    *,
    shards: int,
    stem: str = "model",
    data: Data = "zeros",
) -> dict[str, bytes]:
    """Return a split set by name: all metadata in the first shard, as llama-gguf-split does."""
    return {
        name: build_gguf(keys, part, data=data)
        for name, keys, part in _shards(fields, tensors, shards, stem)
    }


def write_split_gguf(
    folder: str | os.PathLike[str],
    fields: Mapping[str, FieldValue],
    tensors: Tensors,
    *,
    shards: int,
    stem: str = "model",
) -> list[Path]:
    """Write a split set whose tensor data is holes, and return its paths in order."""
    return [
        write_gguf(Path(folder) / name, keys, part)
        for name, keys, part in _shards(fields, tensors, shards, stem)
    ]


def _shards(
    fields: Mapping[str, FieldValue], tensors: Tensors, shards: int, stem: str
) -> Iterable[tuple[str, dict[str, FieldValue], list[TensorSpec]]]:
    specs = [_spec(tensor) for tensor in tensors]
    share = -(-len(specs) // shards)
    for index in range(shards):
        keys: dict[str, FieldValue] = dict(fields) if index == 0 else {}
        keys["split.no"] = (ValueType.UINT16, index)
        keys["split.count"] = (ValueType.UINT16, shards)
        keys["split.tensors.count"] = (ValueType.INT32, len(specs))
        name = f"{stem}-{index + 1:05d}-of-{shards:05d}.gguf"
        yield name, keys, specs[index * share : (index + 1) * share]


def _spec(tensor: TensorSpec | tuple[str, Sequence[int], str | int | TensorType]) -> TensorSpec:
    return tensor if isinstance(tensor, TensorSpec) else TensorSpec(*tensor)


def _laid_out(
    fields: FieldValues,
    tensors: Tensors,
    *,
    version: int,
    byte_order: ByteOrder,
    alignment: int | None,
) -> tuple[bytes, list[tuple[int, bytes]], int]:
    """Return the header, the data to place with its offsets, and the size of the file."""
    pairs: list[tuple[str | bytes, FieldValue]] = (
        list(fields) if isinstance(fields, list | tuple) else [*fields.items()]
    )
    specs = [_spec(tensor) for tensor in tensors]
    stated = next((value for key, value in pairs if key == "general.alignment"), None)
    if alignment is None:
        alignment = _stated_alignment(stated)
    elif stated is None and alignment != _DEFAULT_ALIGNMENT:
        pairs.append(("general.alignment", alignment))
    writer = _Writer(byte_order)
    header = writer.header(version, pairs, specs, alignment)
    if not specs:
        return header, [], len(header)
    start = padded(len(header), alignment)
    placed: list[tuple[int, bytes]] = []
    size = len(header)
    for spec, offset in _offsets(specs, alignment):
        size = max(size, start + offset + padded(spec.size_bytes, alignment))
        if spec.data is not None:
            placed.append((start + offset, spec.data))
    return header, placed, size


_DEFAULT_ALIGNMENT = 32


def _stated_alignment(value: FieldValue | None) -> int:
    plain = value[1] if isinstance(value, tuple) and len(value) == 2 else value
    if isinstance(plain, int) and plain > 0:
        return plain
    return _DEFAULT_ALIGNMENT


def _offsets(specs: Sequence[TensorSpec], alignment: int) -> Iterable[tuple[TensorSpec, int]]:
    """Yield where each tensor's data goes; an offset that was given moves no other tensor."""
    offset = 0
    for spec in specs:
        yield spec, offset
        offset += padded(spec.size_bytes, alignment)


class _Writer:
    """Turns values into bytes of one byte order."""

    def __init__(self, byte_order: ByteOrder) -> None:
        self._sign = "<" if byte_order == "little" else ">"
        self._structs = {type_: struct.Struct(self._sign + form) for type_, form in _FORMS.items()}
        self._length = self._structs[ValueType.UINT64].pack

    def header(
        self,
        version: int,
        pairs: Sequence[tuple[str | bytes, FieldValue]],
        specs: Sequence[TensorSpec],
        alignment: int,
    ) -> bytes:
        parts = [b"GGUF", self._number(ValueType.UINT32, version)]
        parts += [self._number(ValueType.UINT64, count) for count in (len(specs), len(pairs))]
        for key, value in pairs:
            parts += [self._string(key), self._field(value)]
        for spec, offset in _offsets(specs, alignment):
            parts.append(self._info(spec, offset if spec.offset is None else spec.offset))
        return b"".join(parts)

    def _info(self, spec: TensorSpec, offset: int) -> bytes:
        shape = [self._number(ValueType.UINT64, dimension) for dimension in spec.shape]
        return b"".join(
            (
                self._string(spec.name),
                self._number(ValueType.UINT32, len(spec.shape)),
                *shape,
                self._number(ValueType.UINT32, spec.tensor_type.id),
                self._number(ValueType.UINT64, offset),
            )
        )

    def _field(self, value: FieldValue) -> bytes:
        match value:
            case (ValueType() as type_, str() | bytes() | int() | float() as plain):
                return self._typed(type_) + self._scalar(type_, plain)
            case (ValueType() as type_, Sequence() as plain):
                return self._typed(ValueType.ARRAY) + self._items(type_, plain)
            case str() | bytes() | int() | float():
                type_ = _scalar_type(value)
                return self._typed(type_) + self._scalar(type_, value)
            case _:
                return self._typed(ValueType.ARRAY) + self._items(_item_type(value), value)

    def _items(self, type_: ValueType, items: Sequence[Plain]) -> bytes:
        parts = [self._typed(type_), self._number(ValueType.UINT64, len(items))]
        if type_ in _FORMS:
            # At once: vocabularies have a quarter of a million numbers.
            return b"".join(
                (*parts, struct.Struct(f"{self._sign}{len(items)}{_FORMS[type_]}").pack(*items))
            )
        texts = [item for item in items if isinstance(item, str | bytes)]
        if type_ is ValueType.STRING and len(texts) == len(items):
            return b"".join((*parts, *map(self._string, texts)))
        for item in items:
            if isinstance(item, str | bytes | int | float):
                parts.append(self._scalar(type_, item))
            else:
                parts.append(self._items(_item_type(item), item))
        return b"".join(parts)

    def _typed(self, type_: ValueType) -> bytes:
        return self._number(ValueType.UINT32, type_)

    def _scalar(self, type_: ValueType, value: Scalar | bytes) -> bytes:
        if type_ is ValueType.STRING:
            if not isinstance(value, str | bytes):
                raise TypeError(f"{value!r} is no string")
            return self._string(value)
        if isinstance(value, str | bytes):
            raise TypeError(f"{value!r} is no number")
        return self._number(type_, value)

    def _number(self, type_: ValueType, value: float) -> bytes:
        return self._structs[type_].pack(value)

    def _string(self, value: str | bytes) -> bytes:
        stored = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        return self._length(len(stored)) + stored


def _scalar_type(value: Scalar | bytes) -> ValueType:
    match value:
        case bool():
            return ValueType.BOOL
        case str() | bytes():
            return ValueType.STRING
        case float():
            return ValueType.FLOAT32
        case int() if value < 0:
            return ValueType.INT32 if value >= -(1 << 31) else ValueType.INT64
        case int():
            return ValueType.UINT32 if value < 1 << 32 else ValueType.UINT64


def _item_type(items: Sequence[Plain]) -> ValueType:
    if not items:
        raise ValueError("an empty array needs the type of its items: (ValueType.STRING, [])")
    types = {
        _scalar_type(item) if isinstance(item, str | bytes | int | float) else ValueType.ARRAY
        for item in items
    }
    if types <= {ValueType.UINT32, ValueType.INT32}:
        fits = all(isinstance(item, int) and item < 1 << 31 for item in items)
        return ValueType.INT32 if fits else ValueType.INT64
    if len(types) == 1:
        return types.pop()
    if types <= {ValueType.UINT32, ValueType.INT32, ValueType.FLOAT32}:
        return ValueType.FLOAT32
    raise TypeError(f"an array has items of one type, not of {sorted(types)}")

"""The header of one GGUF file: counts, metadata, tensor infos.

Layout of ``gguf_init_from_file_ptr`` (ggml/src/gguf.cpp) and docs/gguf.md of ggml.
Version 2 and 3 have the same layout; version 3 only adds that a file may be
big-endian. Version 1 had 32-bit counts and lengths and isn't read by llama.cpp any
more either.

    magic  u32 version  u64 tensors  u64 keys
    keys    * (string key, u32 type, value)
    tensors * (string name, u32 dimensions, u64 * dimensions, u32 type, u64 offset)
    padding to general.alignment, then tensor data
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from struct import Struct
from typing import Final

from msgspec.structs import replace

from gguf_audit.errors import AuditError, UnsupportedError
from gguf_audit.extents import data_end, padded, tensor_bytes
from gguf_audit.formats._arrays import SIZES, STRUCTS, Allowance, Items
from gguf_audit.formats._cursor import Cursor
from gguf_audit.formats._foreign import FOREIGN_BYTES, foreign, known_kind
from gguf_audit.formats._strings import LENGTH_BYTES, ByteOrder, StringIndex
from gguf_audit.formats.ggml_types import tensor_type
from gguf_audit.gguf import (
    Array,
    Field,
    FileFacts,
    NonFinite,
    Scalar,
    Tail,
    Tensor,
    TensorType,
    ValueType,
)
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.parts import Absent
from gguf_audit.sources import ByteSource

__all__ = ["MAGIC", "read_header"]

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
#: A version up to here is a later format; one above is damage.
PLAUSIBLE_VERSION: Final = 99
DEFAULT_ALIGNMENT: Final = 32
ALIGNMENT_KEY: Final = "general.alignment"
#: Every audit looks for tokens and for equal ones: it is indexed when it is passed.
VOCABULARY_KEY: Final = "tokenizer.ggml.tokens"
#: Their values are what keys and messages are made of, one after the other.
NAME_KEYS: Final = frozenset({"general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.pre"})

#: Smallest key: length, no name, type, one byte of value.
KEY_BYTES = 8 + 4 + 1
#: Smallest tensor info: length, no name, no dimensions, type, offset.
INFO_BYTES = 8 + 4 + 4 + 8
#: Item type and count in front of an array.
ARRAY_HEADER_BYTES = 4 + 8
#: gguf.cpp keeps dimensions and their product in signed 64-bit numbers.
SIGNED_END = 1 << 63

#: Number of dimensions -> dimensions, type and offset of a tensor info.
INFO_STRUCTS: Final[Mapping[ByteOrder, Sequence[Struct]]] = {
    "little": [Struct(f"<{dimensions}QIQ") for dimensions in range(LIMITS.dimensions + 1)],
    "big": [Struct(f">{dimensions}QIQ") for dimensions in range(LIMITS.dimensions + 1)],
}
_CODES: Final = frozenset(int(type_) for type_ in ValueType)


def read_header(source: ByteSource, *, limits: Limits) -> FileFacts:
    """Read the header of one file; AuditError where that can't be done."""
    try:
        return _Header(source, limits).read()
    finally:
        # Arrays that are unpacked later lie in front of what was read.
        source.close()


def _values(source: ByteSource, file: FileFacts, tensor: Tensor) -> tuple[float, ...] | Absent:
    # Few files have any that are asked for.
    from gguf_audit.formats._values import read_values

    return read_values(source, file, tensor)


def _non_finite(source: ByteSource, file: FileFacts, tensor: Tensor) -> NonFinite | Absent | None:
    # Nobody who only shows a file asks.
    from gguf_audit.formats._values import read_non_finite

    return read_non_finite(source, file, tensor)


def _negative(
    source: ByteSource, file: FileFacts, tensor: Tensor
) -> tuple[int, float] | Absent | None:
    # Only importance matrices are asked.
    from gguf_audit.formats._values import read_negative

    return read_negative(source, file, tensor)


class _Header:
    """One walk over one header, with the budgets it has left."""

    def __init__(self, source: ByteSource, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._cursor = Cursor(source, limit=limits.header_bytes)
        self._string_bytes = limits.string_bytes
        self._strings = limits.array_strings
        self._allowance = Allowance(limits.decoded_bytes)
        self._nested_arrays = limits.nested_arrays
        self._types: dict[int, TensorType] = {}

    def read(self) -> FileFacts:
        cursor = self._cursor
        version, order = self._version()
        cursor.use(order)
        # Both numbers are taken before either is judged: a swapped body shows in both.
        at = cursor.position
        tensor_count = cursor.u64("the number of tensors")
        key_count = cursor.u64("the number of keys")
        self._count(key_count, KEY_BYTES, self._limits.metadata_keys, "keys", at + 8)
        self._count(tensor_count, INFO_BYTES, self._limits.tensors, "tensors", at)
        fields = tuple([self._field(index, key_count) for index in range(key_count)])
        cursor.key = None
        # Keys took their share: the infos have to fit into what is left now.
        self._count(tensor_count, INFO_BYTES, self._limits.tensors, "tensors", at)
        alignment = self._alignment(fields)
        tensors = tuple([self._tensor(index, tensor_count) for index in range(tensor_count)])
        cursor.tensor = None
        header_bytes = cursor.position
        data_offset = padded(header_bytes, alignment)
        facts = FileFacts(
            name=self._source.name,
            size_bytes=self._source.size,
            header_bytes=header_bytes,
            header_sha256=cursor.sha256(),
            data_offset=data_offset,
            alignment=alignment,
            version=version,
            byte_order=order,
            fields=fields,
            tensors=tensors,
            filling=self._filling(data_offset) if tensors else None,
            load_values=partial(_values, self._source),
            load_non_finite=partial(_non_finite, self._source),
            load_negative=partial(_negative, self._source),
        )
        end = data_end(facts)
        if end is None or end >= facts.size_bytes:
            return facts
        return replace(facts, tail=self._tail(end))

    def _filling(self, data_offset: int) -> Tail | None:
        """Look at what pads the header, up to the data: at most an alignment."""
        cursor = self._cursor
        size = data_offset - cursor.position
        if not size or data_offset > min(self._source.size, self._limits.header_bytes):
            return None
        stored = cursor.take(size, "the padding")
        held = stored.strip(b"\0")
        if not held:
            return None
        first = len(stored) - len(stored.lstrip(b"\0"))
        return Tail(
            offset=data_offset - size + first,
            size_bytes=len(held),
            kind=known_kind(held),
            empty=False,
        )

    def _tail(self, start: int) -> Tail:
        """Look at both ends of what lies behind the last tensor."""
        size = self._source.size - start
        sample = min(size, self._limits.tail_sample_bytes)
        head = self._source.read(start, sample)
        last = self._source.read(self._source.size - sample, sample) if sample < size else b""
        return Tail(
            offset=start,
            size_bytes=size,
            kind=known_kind(head),
            empty=not (any(head) or any(last)),
        )

    def _version(self) -> tuple[int, ByteOrder]:
        """Take magic and version, and tell the byte order from the version."""
        source, cursor = self._source, self._cursor
        head = source.read(0, min(FOREIGN_BYTES, source.size))
        if not head.startswith(MAGIC):
            raise foreign(head, source.size, source.name)
        cursor.skip(len(MAGIC), "the magic")
        stored = cursor.take(4, "the version")
        version = int.from_bytes(stored, "little")
        swapped = int.from_bytes(stored, "big")
        # As gguf.cpp does: a version is small, so a swapped one has its low half empty.
        if version & 0xFFFF == 0 and swapped in VERSIONS:
            return swapped, "big"
        if version in VERSIONS:
            return version, "little"
        raise self._wrong_version(version, swapped)

    def _wrong_version(self, version: int, swapped: int) -> AuditError:
        where = self._cursor.where(offset=len(MAGIC))
        if 1 in (version, swapped):
            return UnsupportedError(
                "this is GGUF version 1, with 32-bit lengths: llama.cpp reads it no more; convert again",
                where=where,
            )
        later = min(version, swapped)
        if max(VERSIONS) < later <= PLAUSIBLE_VERSION:
            return UnsupportedError(
                f"GGUF version {later} isn't known; versions 2 and 3 are", where=where
            )
        return self._cursor.malformed(
            f"the version is {version}, expected 2 or 3", offset=len(MAGIC)
        )

    def _count(self, count: int, smallest: int, limit: int, what: str, offset: int) -> None:
        """Refuse a count that can't be true before anybody loops over it."""
        remaining = self._cursor.remaining
        if count * smallest > remaining:
            other: ByteOrder = "big" if self._cursor.order == "little" else "little"
            swapped = int.from_bytes(count.to_bytes(8, "little"), "big")
            hint = (
                f"; read as {other}-endian it is {swapped}: the version is in another byte order"
                if swapped * smallest <= remaining
                else ""
            )
            raise self._cursor.malformed(
                f"the header claims {count} {what}, which take at least {count * smallest} bytes, "
                f"but {remaining} are left{hint}",
                offset=offset,
            )
        if count > limit:
            raise self._cursor.over_limit(
                f"the header has {count} {what}, more than the {limit} that we read", offset=offset
            )

    def _field(self, index: int, count: int) -> Field:
        cursor = self._cursor
        offset = cursor.position
        cursor.key = None
        length = cursor.u64(f"the length of key {index + 1} of {count}")
        if length == 0:
            raise cursor.malformed(f"key {index + 1} of {count} has no name", offset=offset)
        cursor.key = key = self._name(length, self._limits.key_bytes, f"key {index + 1} of {count}")
        at = cursor.position
        code = cursor.u32("the type of the value")
        if code not in _CODES:
            raise cursor.malformed(f"the value has type {code}, expected one of 0 to 12", offset=at)
        type_ = ValueType(code)
        if type_ is ValueType.BOOL:
            byte = cursor.take(1, "a value")[0]
            odd = byte if byte > 1 else None
            return Field(key=key, type=type_, value=byte != 0, offset=offset, odd_bool=odd)
        return Field(key=key, type=type_, value=self._value(type_), offset=offset)

    def _name(self, length: int, limit: int, what: str) -> str:
        """Take the bytes of a key or a tensor name."""
        cursor = self._cursor
        if length > limit and length <= cursor.remaining:
            raise cursor.over_limit(f"{what} is {length} bytes long, more than {limit}")
        return cursor.take(length, what).decode("utf-8", "surrogateescape")

    def _value(self, type_: ValueType) -> Scalar | Array:
        cursor = self._cursor
        if type_ is ValueType.STRING:
            return self._string()
        if type_ is ValueType.ARRAY:
            return self._array()
        return cursor.number(STRUCTS[cursor.order][type_], "a value")

    def _string(self) -> str:
        cursor = self._cursor
        length = cursor.u64("the length of a string")
        if length <= cursor.remaining:
            if _is_name(cursor.key or "") and length > self._limits.key_bytes:
                raise cursor.over_limit(
                    f"a name of {length} bytes, more than {self._limits.key_bytes}"
                )
            if length > self._string_bytes:
                raise cursor.over_limit(
                    f"a string of {length} bytes, and string values together exceed "
                    f"{self._limits.string_bytes} bytes"
                )
            self._string_bytes -= length
        return cursor.take(length, "a string").decode("utf-8", "surrogateescape")

    def _array(self) -> Array:
        cursor = self._cursor
        item_type, count = self._array_head()
        offset = cursor.position
        index: StringIndex | None = None
        if item_type is ValueType.ARRAY:
            self._skip_nested(count)
        elif item_type is ValueType.STRING and cursor.key == VOCABULARY_KEY:
            self._strings_fit(count)
            longest = self._limits.string_bytes
            index = StringIndex(cursor.stored_strings(count, "an array", longest=longest))
        else:
            self._skip_items(item_type, count)
        items = Items(
            self._source,
            order=cursor.order,
            offset=offset,
            end=cursor.position,
            item_type=item_type,
            count=count,
            most=self._limits.array_strings,
            allowance=self._allowance,
            index=index,
        )
        return Array(
            item_type=item_type,
            count=count,
            offset=offset,
            size_bytes=cursor.position - offset,
            load=items,
            load_stored=items.stored,
            load_some=items.some,
            load_texts=items.texts if item_type is ValueType.STRING else None,
            load_fingerprints=items.fingerprints if item_type is ValueType.STRING else None,
        )

    def _array_head(self) -> tuple[ValueType, int]:
        cursor = self._cursor
        at = cursor.position
        code = cursor.u32("the type of an array's items")
        if code not in _CODES:
            raise cursor.malformed(
                f"the array's items have type {code}, expected one of 0 to 12", offset=at
            )
        return ValueType(code), cursor.u64("the number of an array's items")

    def _skip_items(self, item_type: ValueType, count: int) -> None:
        """Pass the items of an array whose items aren't arrays."""
        cursor = self._cursor
        if item_type is ValueType.STRING:
            self._strings_fit(count)
            cursor.skip_strings(count, "an array")
            return
        size = SIZES[item_type]
        self._items_fit(item_type, count, size)
        if count > self._limits.array_items:
            raise cursor.over_limit(
                f"the array has {count} items, more than the {self._limits.array_items} that we read"
            )
        cursor.skip(count * size, "an array")

    def _strings_fit(self, count: int) -> None:
        self._items_fit(ValueType.STRING, count, LENGTH_BYTES)
        self._strings -= count
        if self._strings < 0:
            raise self._cursor.over_limit(
                f"the arrays have more than the {self._limits.array_strings} strings that we read"
            )

    def _skip_nested(self, count: int) -> None:
        """Pass an array of arrays, without recursion: depth is the file's choice."""
        cursor = self._cursor
        self._items_fit(ValueType.ARRAY, count, ARRAY_HEADER_BYTES)
        left = [count]
        while left:
            if not left[-1]:
                left.pop()
                continue
            left[-1] -= 1
            self._nested_arrays -= 1
            if self._nested_arrays < 0:
                raise cursor.over_limit(
                    f"more than the {self._limits.nested_arrays} arrays inside arrays that we read"
                )
            item_type, count = self._array_head()
            if item_type is not ValueType.ARRAY:
                self._skip_items(item_type, count)
                continue
            if len(left) + 1 >= self._limits.array_depth:
                raise cursor.over_limit(
                    f"arrays are nested deeper than the {self._limits.array_depth} levels that we read"
                )
            self._items_fit(item_type, count, ARRAY_HEADER_BYTES)
            left.append(count)

    def _items_fit(self, item_type: ValueType, count: int, smallest: int) -> None:
        cursor = self._cursor
        if count * smallest > cursor.remaining:
            # A count that a real file has speaks for a download that broke off.
            hint = "; is the file cut short?" if count <= self._limits.array_strings else ""
            raise cursor.malformed(
                f"the array claims {count} items of type {item_type.name.lower()}, which take at "
                f"least {count * smallest} bytes, but {cursor.remaining} are left{hint}"
            )

    def _alignment(self, fields: tuple[Field, ...]) -> int:
        """Return ``general.alignment``, wherever it stands; 32 without it."""
        found = next((field for field in fields if field.key == ALIGNMENT_KEY), None)
        if found is None:
            return DEFAULT_ALIGNMENT
        self._cursor.key = ALIGNMENT_KEY
        value = found.value
        if found.type is not ValueType.UINT32 or not isinstance(value, int):
            has = "nothing" if found.type is None else found.type.name.lower()
            raise self._cursor.malformed(
                f"the alignment is of type {has}, expected uint32", offset=found.offset
            )
        if value == 0 or value & (value - 1):
            raise self._cursor.malformed(
                f"the alignment is {value}, expected a power of two", offset=found.offset
            )
        if value > self._limits.alignment_bytes:
            raise self._cursor.over_limit(
                f"the alignment is {value}, more than {self._limits.alignment_bytes}",
                offset=found.offset,
            )
        self._cursor.key = None
        return value

    def _tensor(self, index: int, count: int) -> Tensor:
        cursor = self._cursor
        info_offset = cursor.position
        cursor.tensor = None
        what = f"the name of tensor {index + 1} of {count}"
        length = cursor.u64(what)
        cursor.tensor = name = self._name(length, self._limits.tensor_name_bytes, what)
        at = cursor.position
        dimensions = cursor.u32("the number of dimensions")
        if dimensions > LIMITS.dimensions:
            raise cursor.malformed(
                f"the tensor has {dimensions} dimensions, expected at most {LIMITS.dimensions}",
                offset=at,
            )
        # One step for all that is left: the dimensions, the type and the offset.
        form = INFO_STRUCTS[cursor.order][dimensions]
        *shape, code, offset = form.unpack(cursor.take(form.size, "a tensor's shape and type"))
        self._representable(shape, at + 4)
        type_ = self._type(code)
        dims = tuple(shape)
        return Tensor(
            name=name,
            shape=dims,
            type=type_,
            info_offset=info_offset,
            offset=offset,
            size_bytes=tensor_bytes(dims, type_),
        )

    def _representable(self, shape: Sequence[int], offset: int) -> None:
        """Refuse what ggml's signed 64-bit numbers can't hold, as gguf.cpp does."""
        for dimension in shape:
            if dimension >= SIGNED_END:
                raise self._cursor.malformed(
                    f"a dimension is {dimension} ({dimension - 2 * SIGNED_END} as the signed "
                    "number that it is)",
                    offset=offset,
                )
        if prod(shape) >= SIGNED_END:
            raise self._cursor.malformed(
                f"the shape {list(shape)} has {prod(shape)} elements, more than 2^63 - 1",
                offset=offset,
            )

    def _type(self, code: int) -> TensorType:
        # One value per type: a header may name an unknown one a million times.
        found = self._types.get(code)
        if found is None:
            found = self._types[code] = tensor_type(code)
        return found


def _is_name(key: str) -> bool:
    """Tell whether a string is a name, no longer than a key: of a model's parts, of a kind."""
    return key in NAME_KEYS or key.endswith("type")

"""The items of a metadata array, read when somebody first asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from types import MappingProxyType
from typing import Final

from gguf_audit.errors import LimitError
from gguf_audit.fingerprints import Fingerprints
from gguf_audit.formats._cursor import WINDOW_BYTES, Cursor
from gguf_audit.formats._strings import ByteOrder, Part, StringIndex, Strings
from gguf_audit.gguf import Scalar, ValueType
from gguf_audit.sources import ByteSource
from gguf_audit.where import Where

__all__ = ["SIZES", "STRUCTS", "Allowance", "Items"]

_FORMS: Final = {
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

#: How each fixed-size type is stored.
STRUCTS: Final[Mapping[ByteOrder, Mapping[ValueType, Struct]]] = MappingProxyType(
    {
        "little": {type_: Struct("<" + form) for type_, form in _FORMS.items()},
        "big": {type_: Struct(">" + form) for type_, form in _FORMS.items()},
    }
)

#: Bytes of each fixed-size type.
SIZES: Final[Mapping[ValueType, int]] = MappingProxyType(
    {type_: form.size for type_, form in STRUCTS["little"].items()}
)

#: Items unpacked at once.
_CHUNK = 1 << 16


class Allowance:
    """Bytes of strings that may still be decoded, of all arrays of one file."""

    __slots__ = ("left", "whole")

    def __init__(self, whole: int) -> None:
        self.left = self.whole = whole

    def spend(self, size: int, where: Where) -> None:
        """Take so many for good; LimitError where fewer are left."""
        if size > self.left:
            raise LimitError(
                f"{size} more bytes of strings of an array, and all arrays together exceed the "
                f"{self.whole} that we decode",
                where=where,
            )
        self.left -= size


class Items:
    """Reads and decodes the items of an array once, then keeps them.

    Items of nested arrays come as one flat sequence, in file order: rules that look
    for a string find it however deep it is. More than ``most`` items would take
    hundreds of megabytes and are a LimitError; so are more bytes than ``allowance`` has.
    """

    __slots__ = (
        "_allowance",
        "_count",
        "_end",
        "_found",
        "_index",
        "_item_type",
        "_items",
        "_most",
        "_offset",
        "_order",
        "_source",
    )

    def __init__(
        self,
        source: ByteSource,
        *,
        order: ByteOrder,
        offset: int,
        end: int,
        item_type: ValueType,
        count: int,
        most: int,
        allowance: Allowance,
        index: StringIndex | None = None,
    ) -> None:
        self._source = source
        self._order: ByteOrder = order
        self._offset = offset
        self._end = end
        self._item_type = item_type
        self._count = count
        self._most = most
        self._allowance = allowance
        self._items: tuple[Scalar, ...] | None = None
        #: Of those that were looked at when they were passed.
        self._index = index
        self._found: dict[int, str] = {}

    def __call__(self) -> Sequence[Scalar]:
        """Return the items; AuditError where the file can't be read any more."""
        if self._items is None:
            if self._item_type in (ValueType.STRING, ValueType.ARRAY):
                self._allowance.spend(self._end - self._offset, self._where())
            self._items = tuple(self._read())
        return self._items

    def stored(self) -> Iterator[bytes]:
        """Yield the bytes of all items as they stand in the file; AuditError as above."""
        for start in range(self._offset, self._end, WINDOW_BYTES):
            yield self._source.read(start, min(WINDOW_BYTES, self._end - start))

    def texts(self) -> Iterator[Sequence[bytes]]:
        """Yield the strings as they are stored, some at a time; AuditError as above."""
        return (some.texts for some in self._strings())

    def fingerprints(self) -> Fingerprints:
        """Return what tells equal strings; the first call reads them (AuditError)."""
        return self._indexed().fingerprints

    def some(self, indexes: frozenset[int], starts: tuple[str, ...]) -> Mapping[int, str]:
        """Return the strings with these indexes, and those that begin with such a text.

        Goes through the bytes, and decodes what it returns; AuditError as for all.
        """
        if self._item_type is not ValueType.STRING or self._order != "little":
            return {
                index: item
                for index, item in enumerate(self())
                if isinstance(item, str) and (index in indexes or item.startswith(starts))
            }
        # Templates and rules ask for the same few tokens.
        missing = indexes - self._found.keys()
        found = {index: self._found[index] for index in indexes - missing}
        if missing or starts:
            self._budget(self._count)
            for part, data in self._parts():
                chosen = {each for each in missing if 0 <= each - part.first < len(part.begins)}
                begin = (part.at(offset) for offset in _begins(data, starts))
                chosen.update(part.first + each for each in begin if each is not None)
                for each in sorted(chosen):
                    if each not in self._found:
                        text = data[part.where(each - part.first)]
                        self._allowance.spend(len(text), self._where())
                        self._found[each] = text.decode("utf-8", "surrogateescape")
                    found[each] = self._found[each]
        return found

    def _indexed(self) -> StringIndex:
        if self._index is None:
            self._index = StringIndex(self._strings())
        return self._index

    def _parts(self) -> Iterator[tuple[Part, bytes]]:
        """Yield all strings, as many as one window holds at a time, and their bytes."""
        data, start = b"", 0
        for part in self._indexed().parts:
            if part.stop > start + len(data):
                start = part.start
                size = max(part.stop - start, min(WINDOW_BYTES, self._end - self._offset - start))
                data = self._source.read(self._offset + start, size)
            yield part, data[part.start - start : part.stop - start]

    def _strings(self) -> Iterator[Strings]:
        return self._cursor().stored_strings(self._count, "an array")

    def _cursor(self) -> Cursor:
        return Cursor(self._source, start=self._offset, end=self._end, order=self._order)

    def _read(self) -> list[Scalar]:
        cursor = self._cursor()
        found: list[Scalar] = []
        # (item type, items left) of every array that is open; the walk that made this
        # object has bounded the depth.
        left = [(self._item_type, self._count)]
        while left:
            item_type, count = left.pop()
            if item_type is not ValueType.ARRAY:
                self._budget(len(found) + count)
                found.extend(_leaves(cursor, item_type, count))
            elif count:
                left.append((item_type, count - 1))
                left.append((ValueType(cursor.u32("an array")), cursor.u64("an array")))
        return found

    def _budget(self, items: int) -> None:
        if items > self._most:
            raise LimitError(
                f"the array has {items} items, more than the {self._most} that we unpack",
                where=self._where(),
            )

    def _where(self) -> Where:
        return Where(file=self._source.name, offset=self._offset)


def _begins(data: bytes, starts: tuple[str, ...]) -> list[int]:
    """Return where the length of a string may stand that begins with such a text.

    Six bytes of a length below 65,536 are zero, and no text of a vocabulary has six.
    """
    offsets: set[int] = set()
    for start in starts:
        pattern = bytes(6) + start.encode("utf-8", "surrogateescape")
        at = data.find(pattern)
        while at >= 0:
            offsets.add(at - 2)
            at = data.find(pattern, at + 1)
    return sorted(offsets)


def _leaves(cursor: Cursor, item_type: ValueType, count: int) -> Sequence[Scalar]:
    if item_type is ValueType.STRING:
        return cursor.strings(count, "an array")
    form, size = _FORMS[item_type], SIZES[item_type]
    sign = "<" if cursor.order == "little" else ">"
    found: list[Scalar] = []
    for start in range(0, count, _CHUNK):
        some = min(_CHUNK, count - start)
        found.extend(Struct(f"{sign}{some}{form}").unpack(cursor.take(some * size, "an array")))
    return [item != 0 for item in found] if item_type is ValueType.BOOL else found

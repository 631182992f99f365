"""The items of a metadata array, read when somebody first asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from types import MappingProxyType
from typing import Final

from gguf_audit.errors import LimitError
from gguf_audit.formats._cursor import ByteOrder, Cursor
from gguf_audit.sources import ByteSource
from gguf_audit.subject import Scalar, ValueType
from gguf_audit.where import Where

__all__ = ["SIZES", "STRUCTS", "Items"]

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
#: Bytes read at once where nothing is decoded.
_STORED_BYTES = 1 << 20


class Items:
    """Reads and decodes the items of an array once, then keeps them.

    Items of nested arrays come as one flat sequence, in file order: rules that look
    for a string find it however deep it is. More than ``most`` items would take
    hundreds of megabytes and are a LimitError.
    """

    __slots__ = ("_count", "_end", "_item_type", "_items", "_most", "_offset", "_order", "_source")

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
    ) -> None:
        self._source = source
        self._order: ByteOrder = order
        self._offset = offset
        self._end = end
        self._item_type = item_type
        self._count = count
        self._most = most
        self._items: tuple[Scalar, ...] | None = None

    def __call__(self) -> Sequence[Scalar]:
        """Return the items; AuditError where the file can't be read any more."""
        if self._items is None:
            self._items = tuple(self._read())
        return self._items

    def stored(self) -> Iterator[bytes]:
        """Yield the bytes of all items as they stand in the file; AuditError as above."""
        for start in range(self._offset, self._end, _STORED_BYTES):
            yield self._source.read(start, min(_STORED_BYTES, self._end - start))

    def _read(self) -> list[Scalar]:
        cursor = Cursor(self._source, start=self._offset, end=self._end, order=self._order)
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
                where=Where(file=self._source.name, offset=self._offset),
            )


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

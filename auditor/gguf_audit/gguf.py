"""A GGUF file, or a split set read as one, as values.

Nothing here reads a file. ``formats.gguf`` makes these values; arrays stay on disk until
somebody asks for them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct, field

from gguf_audit.fingerprints import Fingerprints
from gguf_audit.parts import Absent, Loading

__all__ = [
    "Array",
    "Card",
    "Field",
    "FileFacts",
    "Gguf",
    "NonFinite",
    "Scalar",
    "Tail",
    "Tensor",
    "TensorType",
    "ValueType",
]

Scalar = int | float | bool | str


class ValueType(enum.IntEnum):
    """Type of a metadata value (``gguf_type`` in ggml/include/gguf.h)."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


def _nothing() -> Iterator[bytes]:
    return iter(())


class Array(Loading, frozen=True, kw_only=True):
    """A metadata array that stays on disk until its items are asked for."""

    #: ``ARRAY`` where items are themselves arrays: legal, but llama.cpp refuses them.
    item_type: ValueType
    count: int
    #: First item's offset and the bytes of all items, lengths included.
    offset: int
    size_bytes: int
    #: Reads and decodes every item. Strings that aren't UTF-8 keep their bytes as
    #: lone surrogates (``surrogateescape``). Raises AuditError.
    load: Callable[[], Sequence[Scalar]]
    #: Reads the same bytes without decoding them, piece by piece. Raises AuditError.
    load_stored: Callable[[], Iterator[bytes]] = _nothing
    #: Reads some strings and keeps no other: those with these indexes, and those that
    #: begin with one of these texts. ``None`` where only all of them can be read.
    load_some: Callable[[frozenset[int], tuple[str, ...]], Mapping[int, str]] | None = None
    #: Reads strings as they are stored, some at a time, and what tells equal ones.
    #: ``None`` where they are no strings, or in no file.
    load_texts: Callable[[], Iterator[Sequence[bytes]]] | None = None
    load_fingerprints: Callable[[], Fingerprints] | None = None

    def __len__(self) -> int:
        return self.count

    def items(self) -> Sequence[Scalar]:
        """Return every item; the first call reads them."""
        return self.load()

    def stored(self) -> Iterator[bytes]:
        """Yield the bytes of all items as they stand in the file."""
        return self.load_stored()

    def some(self, indexes: Iterable[int], starts: tuple[str, ...]) -> Mapping[int, str]:
        """Return index -> string of those with an index, or that begin with such a text.

        For a few of many: a vocabulary as a whole takes 20 MB and a tenth of a second.
        """
        wanted = frozenset(indexes)
        if self.load_some is not None:
            return self.load_some(wanted, starts)
        return {
            index: item
            for index, item in enumerate(self.items())
            if isinstance(item, str) and (index in wanted or item.startswith(starts))
        }

    def texts(self) -> Iterator[bytes]:
        """Yield every string as it is stored, and keep none; others are passed over.

        For a look at all of many: half the time of ``items``, and no memory.
        """
        if self.load_texts is not None:
            return chain.from_iterable(self.load_texts())
        strings = (item for item in self.items() if isinstance(item, str))
        return (string.encode("utf-8", "surrogateescape") for string in strings)

    def fingerprints(self) -> Fingerprints:
        """Return what tells equal strings, made once."""
        if self.load_fingerprints is not None:
            return self.load_fingerprints()
        return Fingerprints(self.texts())


class Field(Struct, frozen=True, kw_only=True):
    """One metadata key of a file, or one that a converter would write."""

    key: str
    #: ``None`` where the value was derived and no file has typed it.
    type: ValueType | None
    value: Scalar | Array | tuple[Scalar, ...]
    #: Byte offset of the key in its file.
    offset: int | None = None
    #: The byte of a bool that is stored as neither 0 nor 1; llama.cpp takes it for true.
    odd_bool: int | None = None


class TensorType(Struct, frozen=True, kw_only=True):
    """A ggml tensor type: how many elements make a block of how many bytes."""

    id: int
    #: Name in ggml.h without ``GGML_TYPE_``; ``type 9999`` where nobody knows it.
    name: str
    #: ``None`` where the type is unknown and an extent can't be computed.
    block_elements: int | None
    block_bytes: int | None
    #: Extra bytes in front of every row (some ik_llama.cpp types).
    row_header_bytes: int = 0
    #: Engine without which the tensor can't be read, where it isn't llama.cpp.
    needs: str | None = None
    #: ggml knew it once and reads it no longer.
    removed: bool = False


class Tensor(Struct, frozen=True, kw_only=True):
    """One tensor info: name, shape, type and extent, never its values."""

    name: str
    #: ``ne`` of ggml: the first dimension is contiguous.
    shape: tuple[int, ...]
    type: TensorType
    #: Offset of the info in its file, for messages.
    info_offset: int
    #: Offset of the data from the start of the file's data section.
    offset: int
    #: ``None`` where the type is unknown or the row isn't a whole number of blocks.
    size_bytes: int | None
    #: Index into ``Gguf.files``.
    file: int = 0

    @property
    def elements(self) -> int:
        """Number of elements."""
        product = 1
        for dimension in self.shape:
            product *= dimension
        return product


class Tail(Struct, frozen=True, kw_only=True):
    """What a file holds where no header and no tensor is: behind all, or in between."""

    #: From the start of the file.
    offset: int
    size_bytes: int
    #: What its first bytes begin, ``a zip archive``; ``None`` for nothing known.
    kind: str | None
    #: Nothing but zeros, as far as was looked: both ends of a long one.
    empty: bool


class NonFinite(Struct, frozen=True, kw_only=True):
    """What a tensor holds beside finite numbers: at least one of these."""

    #: Of the first one, counted from 0.
    index: int
    value: float
    #: Of all of them.
    count: int
    #: Of those that are minus infinity.
    lowest: int
    #: Of those that are plus infinity; what is left is NaN.
    highest: int


def _unread(file: FileFacts, tensor: Tensor) -> Absent:
    del file
    return Absent(f"the data of {tensor.name} can't be read")


class FileFacts(Loading, frozen=True, kw_only=True):
    """One physical file: a whole model or one shard."""

    name: str
    size_bytes: int
    #: Bytes up to the end of the last tensor info, padding not included.
    header_bytes: int
    #: sha256 of those bytes, in hex.
    header_sha256: str
    #: Where tensor data begins: ``header_bytes`` padded to ``alignment``.
    data_offset: int
    alignment: int
    version: int
    byte_order: Literal["little", "big"]
    #: Every key and tensor info in file order, duplicates included.
    fields: tuple[Field, ...]
    tensors: tuple[Tensor, ...]
    tail: Tail | None = None
    #: What lies between header and data where that isn't zeros, from the first other byte to
    #: the last one.
    filling: Tail | None = None
    #: Reads the values of one of its small tensors: ``Gguf.values``.
    load_values: Callable[[FileFacts, Tensor], tuple[float, ...] | Absent] = _unread
    #: Looks at those of one that may be larger: ``Gguf.non_finite``.
    load_non_finite: Callable[[FileFacts, Tensor], NonFinite | Absent | None] = _unread
    #: Looks for one below zero: ``Gguf.negative``.
    load_negative: Callable[[FileFacts, Tensor], tuple[int, float] | Absent | None] = _unread


class Card(Struct, frozen=True, kw_only=True):
    """What the model card beside a file says, as far as rules look at it."""

    license: str | None = None
    license_name: str | None = None
    base_models: tuple[str, ...] = ()
    #: Names of GGUF files anywhere in its text.
    files: frozenset[str] = frozenset()
    #: The same by the place that a link leads to: ``owner/repo`` of the Hub, another
    #: address; "" for those that are in no link, or in one that stays where it is.
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    #: Quantizations anywhere in its text, in capitals.
    labels: frozenset[str] = frozenset()
    #: It describes a checkpoint, whose ``config.json`` is beside it as well.
    of_checkpoint: bool = False


class Gguf(Struct, frozen=True, kw_only=True):
    """One model: a GGUF file, or a split set read as one."""

    #: What the user named.
    name: str
    #: In shard order.
    files: tuple[FileFacts, ...]
    #: Key -> first occurrence, over all shards.
    fields: Mapping[str, Field]
    #: Name -> first occurrence, over all shards.
    tensors: Mapping[str, Tensor]

    @property
    def architecture(self) -> str | None:
        """``general.architecture``, or ``None`` where it is absent or no string."""
        return self.string("general.architecture")

    def values(self, name: str) -> tuple[float, ...] | Absent:
        """Return the values of a small tensor, each call reading them.

        Absent where there is no such tensor, no data or another type than F32. Raises
        AuditError where the file can't be read any more.
        """
        tensor = self.tensors.get(name)
        if tensor is None:
            return Absent(f"there is no {name}")
        file = self.files[tensor.file]
        return file.load_values(file, tensor)

    def non_finite(self, tensor: Tensor) -> NonFinite | Absent | None:
        """Return what a small tensor holds beside finite numbers, ``None`` for nothing.

        Absent where there is no data, or another type than F64, F32, F16 and BF16. Raises
        AuditError where the file can't be read any more.
        """
        file = self.files[tensor.file]
        return file.load_non_finite(file, tensor)

    def negative(self, tensor: Tensor) -> tuple[int, float] | Absent | None:
        """Return the first value of a small tensor that is below zero, and which it is.

        Absent where there is no data, or another type than F32. Raises AuditError where the
        file can't be read any more.
        """
        file = self.files[tensor.file]
        return file.load_negative(file, tensor)

    def string(self, key: str) -> str | None:
        """Return a string value by its full key, ``None`` where there is none."""
        found = self.fields.get(key)
        return found.value if found is not None and isinstance(found.value, str) else None

    def integer(self, key: str) -> int | None:
        """Return an integer value by its full key, ``None`` where there is none."""
        found = self.fields.get(key)
        if found is None or isinstance(found.value, bool) or not isinstance(found.value, int):
            return None
        return found.value

    def array(self, key: str) -> Array | None:
        """Return an array by its full key, ``None`` where there is none."""
        found = self.fields.get(key)
        return found.value if found is not None and isinstance(found.value, Array) else None

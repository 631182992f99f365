"""Hyper-parameters as llama.cpp reads them, and where an effective value comes from."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from gguf_audit.errors import LimitError, Refused
from gguf_audit.gguf import Array, Field, Scalar, ValueType
from gguf_audit.limits import LIMITS
from gguf_audit.where import Where

__all__ = ["Fields", "Origin", "Value"]

T = TypeVar("T")

#: Hyper-parameters without an architecture in front of them (``LLM_KV_NAMES`` in
#: src/llama-arch.cpp): those of Apertus' activation.
_BARE = ("xielu.",)
#: The largest unsigned 32-bit integer.
_U32 = (1 << 32) - 1
#: Types of an array with an integer per block (``get_arr`` in llama-model-loader.cpp).
_BLOCK_TYPES = (ValueType.BOOL, ValueType.UINT32, ValueType.INT32)


class Origin(enum.StrEnum):
    """Where an effective value comes from."""

    KEY = "key"
    RUNTIME_DEFAULT = "runtime default"
    SHAPE = "shape"


class Value(Struct, Generic[T], frozen=True, kw_only=True):
    """An effective value and where it comes from."""

    value: T
    origin: Origin
    #: Full metadata key that holds it, or would hold it.
    key: str


class Fields:
    """Hyper-parameters of one architecture, read as llama.cpp reads them.

    Keys are given without their architecture prefix and matched exactly. A getter
    returns ``None`` for an absent key and raises ``Refused`` where llama.cpp would
    refuse the value's type or an array's length (src/llama-model-loader.cpp,
    ``get_key`` and ``get_key_or_arr``).
    """

    __slots__ = ("_alternatives", "_fields", "architecture")

    def __init__(
        self,
        architecture: str,
        fields: Mapping[str, Field],
        *,
        alternatives: Mapping[str, tuple[Scalar | tuple[Scalar, ...] | None, ...]] | None = None,
    ) -> None:
        self.architecture = architecture
        self._fields = fields
        self._alternatives = alternatives or {}

    @classmethod
    def of(cls, architecture: str, values: Mapping[str, Scalar | Sequence[Scalar]]) -> Fields:
        """Make fields out of plain values by full key, as a converter writes them."""
        fields = {
            key: Field(
                key=key,
                type=None,
                value=value if isinstance(value, Scalar) else tuple(value),
            )
            for key, value in values.items()
        }
        return cls(architecture, fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields.values())

    def __contains__(self, key: str) -> bool:
        return self.key(key) in self._fields

    def key(self, name: str) -> str:
        """Return the full key of a name without its architecture prefix."""
        return name if name.startswith(_BARE) else f"{self.architecture}.{name}"

    def find(self, name: str) -> Field | None:
        """Return the field of a name without its architecture prefix."""
        return self._fields.get(self.key(name))

    def alternatives(self, name: str) -> tuple[Scalar | tuple[Scalar, ...] | None, ...]:
        """Return other values that are as right, ``None`` among them for an absent key.

        Only expected fields have any: what a converter writes may depend on the
        release of the libraries it runs with.
        """
        return self._alternatives.get(self.key(name), ())

    def integer(self, name: str) -> int | None:
        """Return an unsigned 32-bit scalar."""
        found = self.find(name)
        if found is None:
            return None
        if isinstance(found.value, bool) or not isinstance(found.value, int):
            raise self._wrong_type(found, "u32")
        if found.type not in (None, ValueType.UINT32) or not 0 <= found.value <= _U32:
            raise self._wrong_type(found, "u32")
        return found.value

    def number(self, name: str) -> float | None:
        """Return a 32-bit float scalar."""
        found = self.find(name)
        if found is None:
            return None
        if isinstance(found.value, bool) or not isinstance(found.value, int | float):
            raise self._wrong_type(found, "f32")
        if found.type not in (None, ValueType.FLOAT32):
            raise self._wrong_type(found, "f32")
        return float(found.value)

    def boolean(self, name: str) -> bool | None:
        """Return a boolean scalar."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found.value, bool):
            raise self._wrong_type(found, "bool")
        return found.value

    def string(self, name: str) -> str | None:
        """Return a string."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found.value, str):
            raise self._wrong_type(found, "str")
        return found.value

    def items(self, name: str) -> tuple[Scalar, ...] | None:
        """Return an array's items, whatever their number; ``None`` for a scalar too."""
        found = self.find(name)
        if found is None:
            return None
        if isinstance(found.value, Array):
            return tuple(found.value.items())
        return found.value if isinstance(found.value, tuple) else None

    def per_block(self, name: str, blocks: int) -> tuple[int, ...] | None:
        """Return one integer per block: a scalar for all, or an array of ``blocks``."""
        found = self.find(name)
        if found is None:
            return None
        if blocks > LIMITS.blocks:
            message = f"{blocks} blocks, at most {LIMITS.blocks} are looked at"
            raise LimitError(message, where=Where(key=self.key("block_count")))
        if isinstance(found.value, Scalar):
            scalar = self.integer(name)
            return None if scalar is None else (scalar,) * blocks
        if len(found.value) != blocks:
            raise Refused(
                f"{found.key} has {len(found.value)} items, llama.cpp wants one per block, {blocks}",
                where=Where(key=found.key, offset=found.offset),
            )
        if isinstance(found.value, Array) and found.value.item_type not in _BLOCK_TYPES:
            raise self._wrong_type(found, "array of u32, i32 or bool")
        items = self.items(name) or ()
        if not all(isinstance(item, int) for item in items):
            raise self._wrong_type(found, "array of integers")
        # a negative number is read as the large one with the same bits
        return tuple(int(item) & _U32 for item in items)

    def _wrong_type(self, found: Field, wanted: str) -> Refused:
        has = found.type.name.lower() if found.type is not None else type(found.value).__name__
        return Refused(
            f"{found.key} is {has}, llama.cpp wants {wanted}",
            where=Where(key=found.key, offset=found.offset),
        )

"""Metadata that a converter would write, before it has an architecture's prefix."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from msgspec import Struct

from gguf_audit.errors import MalformedError
from gguf_audit.fields import Fields
from gguf_audit.gguf import Field, Scalar, ValueType
from gguf_audit.where import Where

__all__ = ["Either", "Keys", "Written", "to_fields"]

Written = Scalar | tuple[Scalar, ...]


class Either(Struct, frozen=True):
    """A value that depends on the release of the libraries the converter runs with.

    ``None`` stands for a key that isn't written.
    """

    #: What it writes with the release it pins (transformers 4.57.6).
    pinned: Written | None
    #: What it writes with others (transformers 5).
    others: tuple[Written | None, ...]


POOLING_KEY = "pooling_type"
#: How sentence vectors are made stands in another file: none, mean, first or last token.
POOLING = Either(None, (1, 2, 3))
#: What a reranker's file may have instead, which is what it is started with.
RANK = 4

#: Name without prefix -> value.
Keys = Mapping[str, Written | Either]


def to_fields(architecture: str, keys: Keys) -> Fields:
    """Give keys their prefix and the types in which the converter writes them.

    Raises MalformedError for a number that its GGUF type can't hold.
    """
    fields: dict[str, Field] = {}
    alternatives: dict[str, tuple[Written | None, ...]] = {}
    for name, either in keys.items():
        key = f"{architecture}.{name}"
        value = either.pinned if isinstance(either, Either) else either
        if isinstance(either, Either):
            alternatives[key] = tuple(
                None if other is None else _held(key, other) for other in either.others
            )
        if value is not None:
            fields[key] = Field(key=key, type=_type(key, value), value=_held(key, value))
    return Fields(architecture, fields, alternatives=alternatives)


def _type(key: str, value: Written) -> ValueType:
    return ValueType.ARRAY if isinstance(value, tuple) else _scalar(key, value)[0]


def _held(key: str, value: Written) -> Written:
    if isinstance(value, tuple):
        return tuple(_scalar(key, item)[1] for item in value)
    return _scalar(key, value)[1]


def _scalar(key: str, value: Scalar) -> tuple[ValueType, Scalar]:
    match value:
        case bool():
            return ValueType.BOOL, value
        case int():
            if not 0 <= value < 1 << 32:
                raise MalformedError(f"{value} is no u32", where=Where(key=key))
            return ValueType.UINT32, value
        case float():
            return ValueType.FLOAT32, single(value, key=key)
        case str():
            return ValueType.STRING, value


def single(value: float, *, key: str = "") -> float:
    """Return what a 32-bit float makes of a number; MalformedError if too large."""
    if math.isnan(value):
        raise MalformedError("not a number", where=Where(key=key))
    try:
        held: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError as error:
        raise MalformedError(f"{value} is no f32", where=Where(key=key)) from error
    return held

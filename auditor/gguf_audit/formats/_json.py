"""Strict JSON within bounds: whatever the bytes are, a value or an AuditError.

Stricter than ``json``: a key that stands twice is refused, because two readers may
take different ones. Laxer in one point: published configs hold bare ``Infinity``
(``time_step_limit`` of Mamba2), so non-finite numbers are kept as floats, and
``checkpoint.non_finite`` tells where they are. What is read by serde_json alone,
tokenizers and safetensors, may have none.
"""

from __future__ import annotations

import codecs
import json
import math
from typing import cast

from gguf_audit.checkpoint import Json
from gguf_audit.errors import LimitError, MalformedError
from gguf_audit.limits import LIMITS
from gguf_audit.nesting import depth_of
from gguf_audit.sources import ByteSource
from gguf_audit.where import Where

__all__ = ["parse_json", "parse_object", "read_bytes", "read_object", "read_text", "values_in"]


def read_bytes(source: ByteSource, *, limit_bytes: int) -> bytes:
    """Return all bytes of a source; LimitError where it has more than the limit."""
    if source.size > limit_bytes:
        raise LimitError(
            f"{source.name} has {source.size} bytes, more than {limit_bytes} are not read",
            where=Where(file=source.name),
        )
    return source.read(0, source.size)


def read_text(source: ByteSource, *, limit_bytes: int) -> str:
    """Return a source as text, without its byte order mark if it has one."""
    return _decode(read_bytes(source, limit_bytes=limit_bytes), name=source.name, offset=0)


def read_object(source: ByteSource, *, limit_bytes: int) -> dict[str, Json]:
    """Read a source that has to be one JSON object."""
    data = read_bytes(source, limit_bytes=limit_bytes)
    return parse_object(data, name=source.name)


def parse_object(
    data: bytes, *, name: str, offset: int = 0, finite: bool = False
) -> dict[str, Json]:
    """Parse bytes that have to be one JSON object."""
    value = parse_json(data, name=name, offset=offset, finite=finite)
    if not isinstance(value, dict):
        raise MalformedError(
            f"{name} holds {_kind(value)}, expected a JSON object",
            where=Where(file=name, offset=offset),
        )
    return value


def parse_json(data: bytes, *, name: str, offset: int = 0, finite: bool = False) -> Json:
    """Parse bytes that begin at ``offset`` of the file ``name``.

    Raises MalformedError for anything that isn't JSON in UTF-8, with ``finite`` for a
    number that isn't, and LimitError for what is nested too deeply, has too many values
    or an integer too long.
    """
    where = Where(file=name, offset=offset)
    values = values_in(data)
    if values > LIMITS.json_values:
        raise LimitError(
            f"{name} has about {values} values, more than {LIMITS.json_values} are not read",
            where=where,
        )
    text = _decode(data, name=name, offset=offset)
    depth = depth_of(data)
    if depth > LIMITS.json_depth:
        raise LimitError(
            f"{name} is nested {depth} deep, more than {LIMITS.json_depth} is not read", where=where
        )

    def integer(digits: str) -> int:
        length = len(digits.removeprefix("-"))
        if length > LIMITS.json_integer_digits:
            raise LimitError(
                f"{name} has an integer of {length} digits,"
                f" more than {LIMITS.json_integer_digits} are not read",
                where=where,
            )
        return int(digits)

    def members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise MalformedError(
                f"{name} has the key {_shown(_first_twice(pairs))} twice in one object", where=where
            )
        return found

    def real(digits: str) -> float:
        found = float(digits)
        if finite and not math.isfinite(found):
            raise MalformedError(
                f"{name} has the number {_shown(digits)}, which is not finite", where=where
            )
        return found

    try:
        value = json.loads(
            text,
            object_pairs_hook=members,
            parse_int=integer,
            parse_float=real if finite else None,
            parse_constant=real,
        )
    except json.JSONDecodeError as error:
        before = text[: error.pos].encode("utf-8")
        raise MalformedError(
            f"{name} is no JSON at line {error.lineno}, column {error.colno}: {error.msg}",
            where=Where(file=name, offset=offset + _bom_bytes(data) + len(before)),
        ) from None
    return cast("Json", value)


def values_in(data: bytes) -> int:
    """Return about how many values a document has.

    What stands in strings counts as well: no document is refused for a few of them.
    """
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _decode(data: bytes, *, name: str, offset: int) -> str:
    skipped = _bom_bytes(data)
    try:
        return data[skipped:].decode("utf-8")
    except UnicodeDecodeError as error:
        place = offset + skipped + error.start
        raise MalformedError(
            f"{name} is no UTF-8 at byte {place}: {error.reason}",
            where=Where(file=name, offset=place),
        ) from None


def _bom_bytes(data: bytes) -> int:
    return len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0


def _first_twice(pairs: list[tuple[str, Json]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _shown(text: str) -> str:
    cut = text[: LIMITS.shown_characters]
    return ascii(cut if len(text) == len(cut) else cut + "...")


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"

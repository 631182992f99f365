"""Values from a file as JSON: bounded, and such that strict parsers take it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import cast

from gguf_audit.gguf import Array
from gguf_audit.limits import LIMITS

__all__ = ["as_json", "cut", "without_surrogates"]


def as_json(value: object) -> object:
    """Return a value from a file as bounded JSON.

    An array or object of more than ``LIMITS.shown_items`` becomes ``{"items": [...], "count": n}``,
    a long string keeps its beginning, a float that JSON can't hold becomes a string
    (``"NaN"``, ``"Infinity"``), and what is none of JSON's types becomes its ``str``.
    """
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case str():
            return cut(value)
        case bytes():
            return cut(value.hex())
        case Mapping():
            mapping = cast("Mapping[object, object]", value)
            entries = {cut(str(key)): as_json(mapping[key]) for key in _first(mapping)}
            if len(entries) == len(mapping):
                return entries
            return {"items": entries, "count": len(mapping)}
        case Array():
            return {"items": [], "count": value.count}
        case list() | tuple() | range():
            items = cast("tuple[object, ...]", value)
            shown = [as_json(item) for item in _first(items)]
            if len(items) == len(shown):
                return shown
            return {"items": shown, "count": len(items)}
        case set() | frozenset():
            members = cast("frozenset[object]", value)
            return as_json(sorted(members, key=lambda member: (str(type(member)), str(member))))
        case _:
            return cut(str(value))


def _first(items: tuple[object, ...] | Mapping[object, object]) -> Iterator[object]:
    for position, item in enumerate(items):
        if position == LIMITS.shown_items:
            return
        yield item


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def cut(text: str) -> str:
    """Return a text of bounded length, and how much was cut off."""
    limit = LIMITS.report_characters
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit} more characters)"


def without_surrogates(value: object) -> object:
    r"""Spell out what strict JSON parsers refuse: half of a surrogate pair.

    Bytes that are no UTF-8 come as U+DC80..U+DCFF and turn back into ``\xNN``.
    """
    match value:
        case str():
            return value if value.isascii() else "".join(map(_spelled, value))
        case dict():
            mapping = cast("dict[str, object]", value)
            return {
                str(without_surrogates(key)): without_surrogates(item)
                for key, item in mapping.items()
            }
        case list():
            return [without_surrogates(item) for item in cast("list[object]", value)]
        case _:
            return value


def _spelled(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if 0xD800 <= code <= 0xDFFF else character

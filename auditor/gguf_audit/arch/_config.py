"""A Hugging Face ``config.json`` as the official converter sees it.

``ModelBase.load_hparams`` and ``TextModel.__init__`` (conversion/base.py of llama.cpp
build 11434): what the configuration class fills in counts as written, the language
model's part is merged over the root, and the first alias that is present wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from gguf_audit.checkpoint import Json
from gguf_audit.limits import LIMITS
from gguf_audit.text_model import malformed, text_part

__all__ = ["Config", "malformed", "to_number"]


class Config:
    """A ``config.json`` whose values are checked when they are asked for.

    Getters return ``None`` for an absent key and for null, and raise MalformedError,
    naming the key, for a value of the wrong kind.
    """

    __slots__ = ("_values", "raw", "root")

    def __init__(
        self,
        raw: Mapping[str, Json],
        *,
        defaults: Mapping[str, Mapping[str, Json]] | None = None,
    ) -> None:
        #: What was published, without merging and without defaults.
        self.raw = raw
        known = defaults or {}
        root = dict(raw)
        part = text_part(root)
        self.root: Mapping[str, Json] = {**known.get(_type(root, ""), {}), **root}
        if part is None:
            self._values: Mapping[str, Json] = self.root
        else:
            filled = {**known.get(_type(part, f"{_type(root, '')}_text"), {}), **part}
            self._values = {**self.root, **filled}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def get(self, name: str) -> Json:
        """Return a value as it is, ``None`` where it is absent."""
        return self._values.get(name)

    def first(self, *names: str) -> str | None:
        """Return the first name that is present, even with null."""
        return next((name for name in names if name in self._values), None)

    def published(self, name: str) -> Json:
        """Return what ``config.json`` itself says, text part first, without defaults."""
        part = text_part(self.raw)
        if part is not None and name in part:
            return part[name]
        return self.raw.get(name)

    def with_values(self, **values: Json) -> Config:
        """Return a copy in which some values are others."""
        return self._copy({**self._values, **values})

    def without(self, *names: str) -> Config:
        """Return a copy in which some names are absent."""
        return self._copy({name: v for name, v in self._values.items() if name not in names})

    def _copy(self, values: Mapping[str, Json]) -> Config:
        copy = Config({})
        copy.raw, copy.root, copy._values = self.raw, self.root, values
        return copy

    def integer(self, *names: str) -> int | None:
        """Return a count: a whole number from 0 up."""
        name = self.first(*names)
        value = None if name is None else self._values[name]
        if name is None or value is None:
            return None
        return _count(name, value)

    def need(self, *names: str) -> int:
        """Return a count without which there is no conversion."""
        value = self.integer(*names)
        if value is None:
            raise malformed(self.first(*names) or names[0], None, "a whole number")
        return value

    def number(self, *names: str) -> float | None:
        """Return a finite number."""
        name = self.first(*names)
        value = None if name is None else self._values[name]
        if name is None or value is None:
            return None
        return to_number(name, value)

    def boolean(self, name: str) -> bool | None:
        """Return true or false."""
        value = self._values.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise malformed(name, value, "true or false")

    def string(self, *names: str) -> str | None:
        """Return a string."""
        name = self.first(*names)
        value = None if name is None else self._values[name]
        if name is None or value is None:
            return None
        if not isinstance(value, str):
            raise malformed(name, value, "a string")
        return value

    def mapping(self, name: str) -> Mapping[str, Json] | None:
        """Return an object."""
        value = self._values.get(name)
        if value is None or isinstance(value, dict):
            return value
        raise malformed(name, value, "an object")

    def items(self, name: str) -> list[Json] | None:
        """Return an array."""
        value = self._values.get(name)
        if value is None or isinstance(value, list):
            return value
        raise malformed(name, value, "an array")

    def strings(self, name: str) -> tuple[str, ...] | None:
        """Return an array of strings."""
        items = self.items(name)
        if items is None:
            return None
        if not all(isinstance(item, str) for item in items):
            raise malformed(name, items, "an array of strings")
        return tuple(cast("list[str]", items))

    def counts(self, name: str) -> tuple[int, ...] | None:
        """Return an array of counts."""
        items = self.items(name)
        return None if items is None else tuple(_count(name, item) for item in items)

    def blocks(self, *, drafts: int = 0) -> int:
        """Return the number of blocks, ``drafts`` among them, that we'd loop over."""
        name = self.first("n_layers", "num_hidden_layers", "n_layer", "num_layers")
        blocks = self.need(name or "num_hidden_layers") + drafts
        if not 0 < blocks <= LIMITS.blocks:
            raise malformed(name or "num_hidden_layers", blocks, f"1 to {LIMITS.blocks}")
        return blocks


def _type(values: Mapping[str, Json], otherwise: str) -> str:
    found = values.get("model_type")
    return found if isinstance(found, str) else otherwise


def _count(name: str, value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise malformed(name, value, "a whole number")
    return value


#: The largest 32-bit float.
_MOST = (2 - 2**-23) * 2.0**127


def to_number(name: str, value: Json) -> float:
    """Return a number that a 32-bit float holds; MalformedError, naming the key, for another.

    GGUF files have no wider ones, and products of what is left stay finite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed(name, value, "a number")
    try:
        number = float(value)
    except OverflowError as error:
        raise malformed(name, "an integer of great length", "a number") from error
    if not abs(number) <= _MOST:
        raise malformed(name, value, "a number that 32 bits hold")
    return number

"""Parts of a value that aren't there, or not yet."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Absent", "Loading"]


class Absent(Struct, frozen=True):
    """A part that isn't there, and why."""

    reason: str


class Loading(Struct, frozen=True, kw_only=True):
    """A value that reads more of itself when somebody asks.

    How it does that, the fields whose names begin with ``load``, doesn't count where two are
    compared.
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name)
            for name in self.__struct_fields__
            if not name.startswith("load")
        )

    __hash__ = None  # type: ignore[assignment]  # as of any value with mappings inside

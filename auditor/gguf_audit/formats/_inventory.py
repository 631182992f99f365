"""Which files a checkpoint has, as far as that is known."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Inventory"]


class Inventory(Struct, frozen=True, kw_only=True):
    """Which files a checkpoint has, as far as that is known.

    A folder and the Hub's listing are complete. The local Hub cache holds the files
    that somebody asked for, and remembers some that aren't there.
    """

    names: frozenset[str]
    #: Where other files may exist: those that are known not to. ``None``: no others do.
    absent: frozenset[str] | None = None

    def unknown(self, *wanted: str) -> str | None:
        """Return the first of these files of which nobody knows whether it exists."""
        if self.absent is None:
            return None
        known = self.names | self.absent
        return next((name for name in wanted if name not in known), None)

    def missing(self, name: str) -> str:
        """Say why a file that isn't at hand can't be read."""
        if self.unknown(name) is not None:
            return f"{name} isn't in the local Hub cache"
        return (
            f"no {name} in the checkpoint"
            if self.absent is not None
            else f"no {name} in the folder"
        )

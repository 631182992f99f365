"""Reads something once, whether or not that works.

Every rule that needs it asks again: what takes long to refuse would take that long for
each of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TypeVar, TypeVarTuple

from gguf_audit.errors import AuditError

__all__ = ["T", "once", "settled"]

Ts = TypeVarTuple("Ts")
T = TypeVar("T")


def settled(read: Callable[[*Ts], T], *arguments: *Ts) -> Callable[[], T]:
    """Read now; return what gives what was read, or raises why it couldn't be."""
    try:
        found = read(*arguments)
    except AuditError as error:
        why = error
        # Else it would keep the frames of all who have asked for it, and their files.
        why.forget()
    else:
        return lambda: found

    def refuse() -> T:
        raise why.with_traceback(None)

    return refuse


def once(read: Callable[[*Ts], T], *, most: int | None = None) -> Callable[[*Ts], T]:
    """Return a reader that remembers what it read, and why it couldn't read something.

    It remembers all that it was asked for, or the ``most`` latest.
    """

    @functools.lru_cache(maxsize=most)
    def tried(*arguments: Hashable) -> Callable[[], T]:
        return settled(read, *arguments)  # type: ignore[arg-type]

    return lambda *arguments: tried(*arguments)()

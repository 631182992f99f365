"""Reads something once, whether or not that works."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TypeVar, TypeVarTuple

from gguf_audit.errors import AuditError

__all__ = ["once"]

Ts = TypeVarTuple("Ts")
T = TypeVar("T")


def once(read: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
    """Return a reader that remembers what it read, and why it couldn't read something.

    Every rule that needs it asks again: what takes long to refuse would take that long
    for each of them.
    """

    @functools.cache
    def tried(*arguments: Hashable) -> T | AuditError:
        try:
            return read(*arguments)  # type: ignore[arg-type]
        except AuditError as error:
            error.forget()
            return error

    def remembered(*arguments: *Ts) -> T:
        found = tried(*arguments)
        if isinstance(found, AuditError):
            raise found.with_traceback(None)
        return found

    return remembered

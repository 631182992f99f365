"""Where bytes come from: files, folders, memory, the Hub, the web, all behind two interfaces.

``formats`` sees a ``ByteSource`` and a ``Tree`` and cannot tell a local file from
memory or a range request.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from gguf_audit.sources._names import contained
from gguf_audit.sources.local import FileSource, LocalTree
from gguf_audit.sources.memory import MemorySource, MemoryTree

__all__ = [
    "ByteSource",
    "Distant",
    "FileSource",
    "LocalTree",
    "MemorySource",
    "MemoryTree",
    "Tree",
    "contained",
]


Read = TypeVar("Read")


class ByteSource(Protocol):
    """A run of bytes of known size that can be read anywhere."""

    @property
    def name(self) -> str:
        """What to call it in messages."""
        ...

    @property
    def size(self) -> int:
        """Bytes in all, fixed when the source was opened."""
        ...

    def read(self, start: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``start``; anything else is an AuditError."""
        ...

    def close(self) -> None:
        """Give back what reading holds open; what was read can be read again."""
        ...


class Tree(Protocol):
    """A folder of named sources: a checkpoint, or the shards of a set."""

    @property
    def identity(self) -> str:
        """What to call it in a report: a path, or ``org/repo@commit``."""
        ...

    def names(self, folder: str = "") -> Sequence[str]:
        """Return the names of what is in it, sorted, without what is in sub-folders.

        ``folder`` names one of its sub-folders instead; the names returned then
        begin with ``folder/`` as ``open`` wants them, and there are none where it
        isn't there. UnlistedError where only names that one knows can be opened.
        """
        ...

    def open(self, name: str) -> ByteSource:
        """Open one of them; SourceError where that fails."""
        ...


@runtime_checkable
class Distant(Protocol):
    """A tree that is far away: asking for one file after the other takes too long."""

    def each(
        self, names: Sequence[str], read: Callable[[ByteSource], Read]
    ) -> Generator[Read, None, None]:
        """Yield what ``read`` makes of each file, in order; several are read at a time."""
        ...

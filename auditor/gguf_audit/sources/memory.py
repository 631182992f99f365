"""Bytes and folders that are in memory already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gguf_audit.errors import SourceError
from gguf_audit.sources._names import contained
from gguf_audit.where import Where

__all__ = ["MemorySource", "MemoryTree"]


class MemorySource:
    """Bytes under a name."""

    __slots__ = ("_content", "_name")

    def __init__(self, name: str, content: bytes) -> None:
        self._name = name
        self._content = content

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self._name

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self._content)

    def read(self, start: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``start``; SourceError otherwise."""
        if start < 0 or length < 0 or start + length > self.size:
            raise SourceError(
                f"can't read {self._name}: {length} bytes at {start} are not in {self.size} bytes",
                where=Where(file=self._name),
            )
        return self._content[start : start + length]

    def close(self) -> None:
        """Do nothing: memory isn't opened."""


class MemoryTree:
    """A folder made of a mapping from name to bytes."""

    __slots__ = ("_files", "_identity")

    def __init__(self, files: Mapping[str, bytes], *, identity: str = "memory") -> None:
        self._files = dict(files)
        self._identity = identity

    @property
    def identity(self) -> str:
        """What to call it in a report."""
        return self._identity

    def names(self, folder: str = "") -> Sequence[str]:
        """Return the names in it, or in a sub-folder of it, sorted."""
        return tuple(sorted(name for name in self._files if name.rpartition("/")[0] == folder))

    def open(self, name: str) -> MemorySource:
        """Open a file by its name; an AuditError where there is none."""
        content = self._files.get(contained(name))
        if content is None:
            raise SourceError(f"can't read {name}: no such file", where=Where(file=name))
        return MemorySource(name, content)

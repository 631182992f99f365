"""Files and folders of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from gguf_audit.errors import SourceError
from gguf_audit.sources._names import contained
from gguf_audit.where import Where

__all__ = ["OPEN_FLAGS", "FileSource", "LocalTree", "irregular"]

#: O_NONBLOCK: opening a named pipe must not wait for a writer. O_NOCTTY: nor may a
#: terminal become ours. Windows has neither, but wants O_BINARY.
OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

#: Device, inode, size and modification time: what must not change between reads.
_Identity = tuple[int, int, int, int]


def irregular(mode: int) -> str | None:
    """Return what a file is by its mode, ``None`` for a regular one."""
    if stat.S_ISREG(mode):
        return None
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")


class FileSource:
    """A regular file that stays the same file while it is read.

    The file is opened anew for every read: thousands of shards then need no open
    descriptors, and a file that was replaced, cut or rewritten meanwhile is noticed
    as such. It is never mapped: a mapped file that shrinks kills the process.
    """

    __slots__ = ("_identity", "_name", "_path")

    def __init__(self, path: str | os.PathLike[str], *, name: str | None = None) -> None:
        """Look at the file; SourceError where it isn't a readable regular file."""
        self._path = os.fspath(path)
        self._name = self._path if name is None else name
        descriptor = self._open()
        try:
            self._identity: _Identity = self._look(descriptor)
        finally:
            os.close(descriptor)

    @property
    def name(self) -> str:
        """The path as it was given, or the name inside its tree."""
        return self._name

    @property
    def size(self) -> int:
        """Bytes of the file when it was opened."""
        return self._identity[2]

    def read(self, start: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``start``; SourceError otherwise."""
        if start < 0 or length < 0 or start + length > self.size:
            raise self._error(f"{length} bytes at {start} are not in a file of {self.size} bytes")
        descriptor = self._open()
        try:
            self._check(descriptor)
            parts = self._read_parts(descriptor, start, length)
            self._check(descriptor)
        finally:
            os.close(descriptor)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Do nothing: between two reads nothing is open."""

    def _read_parts(self, descriptor: int, start: int, length: int) -> list[bytes]:
        parts: list[bytes] = []
        try:
            os.lseek(descriptor, start, os.SEEK_SET)
            while length:
                # One call returns less than asked for at 2 GiB and on some mounts.
                part = os.read(descriptor, length)
                if not part:
                    raise self._error("the file became shorter while it was read")
                parts.append(part)
                length -= len(part)
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        return parts

    def _open(self) -> int:
        try:
            # stat before open: opening a device can already do something.
            self._regular(Path(self._path).stat().st_mode)
            return os.open(self._path, OPEN_FLAGS)
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        except ValueError as error:
            raise self._error("the path contains a NUL") from error

    def _look(self, descriptor: int) -> _Identity:
        try:
            found = os.fstat(descriptor)
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        self._regular(found.st_mode)
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def _regular(self, mode: int) -> None:
        kind = irregular(mode)
        if kind is not None:
            raise self._error(f"it is {kind}, not a regular file")

    def _check(self, descriptor: int) -> None:
        if self._look(descriptor) != self._identity:
            raise self._error("the file was changed or replaced while it was read")

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"can't read {self._name}: {reason}", where=Where(file=self._name))


class LocalTree:
    """A folder of this machine.

    A link in it may lead to another place in the folder, or into the ``blobs`` of the
    Hub cache that the folder is a snapshot in. ``follow_links`` lets links lead
    anywhere: only for names that the user gave, never for names out of a file.
    """

    __slots__ = ("_folder", "_follow_links")

    def __init__(self, folder: str | os.PathLike[str], *, follow_links: bool = False) -> None:
        """Take a folder; SourceError where it is none."""
        self._folder = Path(folder)
        self._follow_links = follow_links
        try:
            is_folder = stat.S_ISDIR(self._folder.stat().st_mode)
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        except ValueError as error:
            raise self._error("the path contains a NUL") from error
        if not is_folder:
            raise self._error("it isn't a folder")

    @property
    def identity(self) -> str:
        """The path as it was given."""
        return str(self._folder)

    def names(self, folder: str = "") -> Sequence[str]:
        """Return the names in it, sorted.

        What is no regular file, a folder say, or a link that leads nowhere, is among them:
        whoever opens it is told so, where a name that is left out would be a file that isn't
        there.

        ``folder`` names one of its sub-folders instead, as ``Tree`` has it.
        """
        path = self._folder / contained(folder) if folder else self._folder
        prefix = f"{folder}/" if folder else ""
        try:
            if folder and not path.is_dir():
                return ()
            with os.scandir(path) as entries:
                return tuple(sorted(prefix + each.name for each in entries))
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error

    def open(self, name: str) -> FileSource:
        """Open a file by its name, ``a/b`` in a sub-folder; an AuditError otherwise."""
        path = self._folder / contained(name)
        if not self._follow_links:
            self._refuse_escape(path, name)
        return FileSource(path, name=name)

    def _refuse_escape(self, path: Path, name: str) -> None:
        try:
            target = path.resolve()
            folder = self._folder.resolve()
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            raise SourceError(
                f"can't read {name}: its link leads nowhere", where=Where(file=name)
            ) from error
        # snapshots/<commit>/x -> ../../blobs/<sha> (huggingface_hub file_download.py), which
        # may be a link into the blobs of the whole cache (utils/_shared_blobs.py).
        snapshots = next((up for up in (folder, *folder.parents) if up.name == "snapshots"), None)
        stores = [] if snapshots is None else [snapshots.parent, snapshots.parent.parent]
        if any(target.is_relative_to(place) for place in (folder, *(s / "blobs" for s in stores))):
            return
        raise SourceError(
            f"can't read {name}: it is a link that leads out of its folder", where=Where(file=name)
        )

    def _error(self, reason: str) -> SourceError:
        name = str(self._folder)
        return SourceError(f"can't read {name}: {reason}", where=Where(file=name))

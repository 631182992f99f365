"""Files of any file system that fsspec has an implementation of: ``s3://``, ``gs://``, ...

Of a file a window is fetched that most headers fit in, then what follows it: fsspec has
no stream that can be left, and every implementation has ``cat_file`` with a range.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gguf_audit.errors import SourceError
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources._names import contained
from gguf_audit.sources._stream import NEAR_BYTES, Traffic
from gguf_audit.sources.addresses import shown_url
from gguf_audit.where import Where

__all__ = ["FsspecTree"]

T = TypeVar("T")

#: A header of a small vocabulary; each further window is twice as long.
_FIRST_WINDOW_BYTES = 1 << 20


class FsspecTree:
    """A folder of a file system of fsspec's."""

    def __init__(self, url: str, *, limits: Limits = LIMITS) -> None:
        """Take the address of a file or a folder; SourceError where fsspec can't open it."""
        self._shown = shown_url(url)
        self._limits = limits
        self.traffic = Traffic()
        try:
            fsspec = importlib.import_module("fsspec.core")
        except ImportError:
            raise self._error("fsspec isn't installed: pip install 'gguf-audit[fsspec]'") from None
        found: tuple[Any, str] = self._done(lambda: fsspec.url_to_fs(url, skip_instance_cache=True))
        self._files, self._root = found
        self.is_file = self._done(lambda: bool(self._files.isfile(self._root)), requests=1)
        if self.is_file:
            self._root, _, self.name = self._root.rpartition("/")
        else:
            self.name = ""

    @property
    def identity(self) -> str:
        """The address as it may be shown."""
        return self._shown

    def found(self) -> Sequence[str]:
        """Return the names of all files below it, sorted."""
        paths: list[str] = self._done(lambda: list(self._files.find(self._root)), requests=1)
        return sorted(self._inside(path) for path in paths)

    def names(self, folder: str = "") -> Sequence[str]:
        """Return the names of the files in it, or in a sub-folder of it, sorted."""
        place = f"{self._root}/{contained(folder)}" if folder else self._root
        entries: list[dict[str, Any]] = self._done(
            lambda: list(self._files.ls(place, detail=True)), requests=1
        )
        return sorted(self._inside(entry["name"]) for entry in entries if entry["type"] == "file")

    def open(self, name: str) -> _Windowed:
        """Open a file by its name; nothing but its size is asked yet."""
        path = f"{self._root}/{contained(name)}"
        size: Any = self._done(lambda: self._files.info(path)["size"], requests=1)
        if type(size) is not int or size < 0:
            raise self._error(f"nobody knows how long {name} is")
        return _Windowed(self, name, size, self._limits)

    def fetch(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes of a file from ``start`` to ``end``, ``end`` not included."""
        path = f"{self._root}/{name}"
        found: bytes = self._done(
            lambda: bytes(self._files.cat_file(path, start=start, end=end)), requests=1
        )
        self.traffic.bytes += len(found)
        if len(found) != end - start:
            raise self._error(f"asked for bytes {start}-{end - 1} of {name}, got {len(found)}")
        return found

    def _inside(self, path: str) -> str:
        # Some implementations put a slash in front of what others begin with.
        return path.lstrip("/").removeprefix(self._root.strip("/")).lstrip("/")

    def _done(self, work: Callable[[], T], *, requests: int = 0) -> T:
        """Let an implementation work, for a while; what it raises is a SourceError.

        It runs in a thread that is left behind when its time is over: no two of them
        have the same way of being told how long to wait.
        """
        self.traffic.requests += requests
        box: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

        def run() -> None:
            try:
                box.put((True, work()))
            except BaseException as error:  # raised below, where one waits
                box.put((False, error))

        threading.Thread(target=run, name="gguf-audit-fsspec", daemon=True).start()
        try:
            done, value = box.get(timeout=self._limits.remote_seconds)
        except queue.Empty:
            raise self._error("no answer in time") from None
        if done:
            found: T = value
            return found
        raise self._error(_reason(value)) from None

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"can't read {self._shown}: {reason}", where=Where(file=self._shown))


def _reason(error: BaseException) -> str:
    """Say what is wrong, not in the words of a library that may quote credentials."""
    match error:
        case FileNotFoundError():
            return "no such file"
        case PermissionError():
            return "it isn't allowed: are the credentials set that its fsspec implementation reads?"
        case ImportError():
            return (
                "fsspec lacks what reads this protocol; for s3:// pip install 'gguf-audit[fsspec]'"
            )
        case ValueError() if "Protocol not known" in str(error):
            return "fsspec doesn't know this protocol"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return f"its fsspec implementation fails ({type(error).__name__})"


class _Windowed:
    """The beginning of a file, fetched as far as it is read and never twice."""

    __slots__ = ("_fetched", "_limits", "_tree", "name", "size")

    def __init__(self, tree: FsspecTree, name: str, size: int, limits: Limits) -> None:
        self._tree = tree
        self._limits = limits
        self._fetched = bytearray()
        self.name = name
        self.size = size

    def read(self, start: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``start``; an AuditError otherwise."""
        end = start + length
        if start < 0 or length < 0 or end > self.size:
            raise self._error(f"{length} bytes at {start} are not in {self.size} bytes")
        if start > len(self._fetched) + NEAR_BYTES and length <= self._limits.tail_sample_bytes:
            return self._tree.fetch(self.name, start, end)
        if end > self._limits.header_bytes:
            raise self._error("tensor data is never fetched")
        while len(self._fetched) < end:
            had = len(self._fetched)
            window = max(had, _FIRST_WINDOW_BYTES)
            self._fetched += self._tree.fetch(self.name, had, min(had + window, self.size))
        return bytes(memoryview(self._fetched)[start:end])

    def close(self) -> None:
        """Do nothing: every range was fetched whole."""

    def _error(self, reason: str) -> SourceError:
        return SourceError(
            f"can't read {self.name} of {self._tree.identity}: {reason}",
            where=Where(file=self.name),
        )

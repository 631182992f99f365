"""Files of any file system that fsspec has an implementation of: ``s3://``, ``gs://``, ...

Of a file a window is fetched that most headers fit in, then what follows it: fsspec has
no stream that can be left, and every implementation has ``cat_file`` with a range. A
process of its own asks for that (``_fsspec_child``): nothing else bounds what a server
that knows no ranges makes an implementation hold.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from gguf_audit import processes
from gguf_audit.errors import SourceError
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources._fsspec_child import LENGTH_BYTES, TOO_MUCH, outcome
from gguf_audit.sources._names import contained
from gguf_audit.sources._stream import NEAR_BYTES, Traffic
from gguf_audit.sources.addresses import shown_url
from gguf_audit.where import Where

__all__ = ["FsspecTree", "stays_here"]

#: Protocols that stay on this machine.
_LOCAL = frozenset({"local", "memory"})

#: A header of a small vocabulary; each further window is twice as long.
_FIRST_WINDOW_BYTES = 1 << 20
#: The arguments are what memory it may have, and where it imports from.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:];"
    "from gguf_audit.sources._fsspec_child import serve; serve(int(sys.argv[1]))"
)


def stays_here(url: str) -> bool:
    """Tell whether there is no server behind an address, so none that could do anything."""
    return url.partition("://")[0] in _LOCAL


class FsspecTree:
    """A folder of a file system of fsspec's."""

    def __init__(self, url: str, *, limits: Limits = LIMITS) -> None:
        """Take the address of a file or a folder; SourceError where fsspec can't open it."""
        self._url = url
        self._shown = shown_url(url)
        self._limits = limits
        #: Why its server isn't asked any more.
        self._lost: str | None = None
        self.traffic = Traffic()
        found: tuple[str, bool] = self._ask("place")
        self._root, self.is_file = found
        self.name = ""
        if self.is_file:
            self._root, _, self.name = self._root.rpartition("/")

    @property
    def identity(self) -> str:
        """The address as it may be shown."""
        return self._shown

    def found(self) -> Sequence[str]:
        """Return the names of all files below it, sorted."""
        paths: list[str] = self._ask("find", self._root)
        return sorted(self._inside(path) for path in paths)

    def names(self, folder: str = "") -> Sequence[str]:
        """Return the names of the files in it, or in a sub-folder of it, sorted."""
        place = f"{self._root}/{contained(folder)}" if folder else self._root
        paths: list[str] = self._ask("list", place)
        return sorted(self._inside(path) for path in paths)

    def open(self, name: str) -> _Windowed:
        """Open a file by its name; nothing but its size is asked yet."""
        size: int | None = self._ask("size", f"{self._root}/{contained(name)}")
        if size is None:
            raise self._error(f"nobody knows how long {name} is")
        return _Windowed(self, name, size, self._limits)

    def fetch(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes of a file from ``start`` to ``end``, ``end`` not included."""
        found: bytes = self._ask("fetch", f"{self._root}/{name}", start, end, size=end - start)
        self.traffic.bytes += len(found)
        return found

    def _inside(self, path: str) -> str:
        # Some implementations put a slash in front of what others begin with.
        return path.lstrip("/").removeprefix(self._root.strip("/")).lstrip("/")

    def _ask(self, what: str, *given: object, size: int = 0) -> Any:
        """Return what its file system answers, in time and within bounds."""
        if lost := self._lost or self.traffic.given_up(self._limits):
            raise self._error(lost)
        self.traffic.requests += 1
        granted = size + self._limits.fsspec_excess_bytes
        request = {"url": self._url, "ask": what, "given": given, "bytes": granted}
        if stays_here(self._url):
            reason, found = outcome(request)
        else:
            begun = time.monotonic()
            try:
                reason, found = _PROCESS.ask(request, seconds=self._limits.remote_seconds)
            except _EndedError as error:
                # It would end the next one, too.
                self._lost = f"{error}; it isn't asked again"
                raise self._error(self._lost) from None
            usual = self._limits.remote_usual_seconds
            usual += size / self._limits.remote_bytes_per_second
            self.traffic.idle += max(0.0, time.monotonic() - begun - usual)
        if reason:
            raise self._error(reason)
        return found

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"can't read {self._shown}: {reason}", where=Where(file=self._shown))


class _EndedError(Exception):
    """The process that asks file systems has ended; its message says why."""


class _Process:
    """The process that asks file systems, started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        #: Who started it: a process that was forked later has to start its own.
        self._owner = os.getpid()
        #: What it was started with: that names servers and credentials, and packages.
        self._surroundings: object = None
        #: It answers one after the other, whichever thread asks.
        self._lock = threading.Lock()

    def ask(self, request: Mapping[str, object], *, seconds: float) -> tuple[str, Any]:
        """Return why there is no answer, "" where there is one, and that; or _EndedError."""
        if self._owner != os.getpid():
            # Who held the lock stayed behind.
            self._process, self._owner, self._lock = None, os.getpid(), threading.Lock()
        with self._lock:
            return self._ask(request, seconds)

    def _ask(self, request: Mapping[str, object], seconds: float) -> tuple[str, Any]:
        if self._surroundings != (dict(os.environ), sys.path):
            self.end()
        box: queue.SimpleQueue[tuple[str, Any] | Exception] = queue.SimpleQueue()
        try:
            process = self._process = self._process or self._start()

            def run() -> None:
                try:
                    box.put(_answer(process, request))
                except Exception as error:  # told below, where one waits
                    box.put(error)

            threading.Thread(target=run, name="gguf-audit-fsspec", daemon=True).start()
            answer = box.get(timeout=seconds)
        except queue.Empty:
            self.end()
            return "no answer in time", None
        except (OSError, RuntimeError):
            self.end()
            raise _EndedError("no process can be had that asks its server") from None
        except BaseException:
            # What it answers by and by would be taken for the answer to the next request.
            self.end()
            raise
        if not isinstance(answer, Exception):
            return answer
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        self.end()
        if process.returncode == TOO_MUCH:
            raise _EndedError("its server sends more than it was asked for")
        raise _EndedError(f"the process that asks its server ended, exit code {process.returncode}")

    def _start(self) -> subprocess.Popen[bytes]:
        self._surroundings = (dict(os.environ), [*sys.path])
        memory = str(LIMITS.fsspec_memory_bytes)
        # It needs what its user has: credentials, and a file system that was installed.
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-I", "-c", _PROGRAM, memory, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self.end)
        return process

    def end(self) -> None:
        """End it, whatever it does."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        atexit.unregister(self.end)
        processes.end(process)


def _answer(process: subprocess.Popen[bytes], request: Mapping[str, object]) -> tuple[str, Any]:
    requests, answers = process.stdin, process.stdout
    if requests is None or answers is None:
        raise AssertionError("the pipes were asked for")
    requests.write(json.dumps(request).encode("ascii") + b"\n")
    requests.flush()

    def take(size: int) -> bytes:
        taken = answers.read(size)
        if len(taken) < size:
            raise EOFError
        return taken

    answer: dict[str, Any] = json.loads(take(int.from_bytes(take(LENGTH_BYTES), "big")))
    size: int | None = answer["bytes"]
    return answer["reason"], answer["found"] if size is None else take(size)


_PROCESS = _Process()


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
            window = min(max(had, _FIRST_WINDOW_BYTES), self._limits.remote_window_bytes)
            self._fetched += self._tree.fetch(self.name, had, min(had + window, self.size))
        return bytes(memoryview(self._fetched)[start:end])

    def close(self) -> None:
        """Do nothing: every range was fetched whole."""

    def _error(self, reason: str) -> SourceError:
        return SourceError(
            f"can't read {self.name} of {self._tree.identity}: {reason}",
            where=Where(file=self.name),
        )

"""Files that the user names to say what is demanded: a policy, an earlier report."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from gguf_audit.limits import LIMITS
from gguf_audit.policies import PolicyError
from gguf_audit.sources.local import OPEN_FLAGS, irregular

__all__ = ["read_file"]

#: What the process holds already: a shell's ``<(...)``, or stdin.
_HELD = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_CHUNK_BYTES = 1 << 20


def read_file(path: Path, *, limit_bytes: int) -> bytes:
    """Return the content of a file; PolicyError where it can't be read, or is too long.

    A regular file, a shell's pipe or ``/dev/null``: nobody may ever write to another pipe,
    and opening a device can already do something.
    """
    try:
        mode = path.stat().st_mode
        kind = irregular(mode)
        is_pipe = stat.S_ISFIFO(mode) and str(path).startswith(_HELD)
        if kind is not None and not is_pipe and not path.samefile(os.devnull):
            raise PolicyError(f"can't read {path}: it is {kind}, not a regular file")
        content = bytearray()
        for chunk in _chunks(path, seconds=LIMITS.pipe_seconds if is_pipe else 0):
            content += chunk
            if len(content) > limit_bytes:
                raise PolicyError(f"{path} has more than {limit_bytes:,} bytes, more are not read")
    except OSError as error:
        raise PolicyError(f"can't read {path}: {error.strerror}") from None
    return bytes(content)


def _chunks(path: Path, *, seconds: float) -> Iterator[bytes]:
    """Yield what a file holds; PolicyError where its end hasn't come after some seconds."""
    deadline = time.monotonic() + seconds
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        while _is_ready(descriptor, max(0, deadline - time.monotonic())):
            chunk = os.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                return
            yield chunk
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)
    # The kernel's log, /proc/kmsg, is a regular file that waits for more.
    waited = f" in {seconds:g} s" if seconds else ""
    raise PolicyError(f"can't read {path}: its end didn't come{waited}")


def _is_ready(descriptor: int, seconds: float) -> bool:
    # Windows can wait for sockets alone, and has no other file that would wait.
    return sys.platform == "win32" or bool(select.select([descriptor], [], [], seconds)[0])

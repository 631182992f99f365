"""Files that the user names to say what is demanded: a policy, an earlier report."""

from __future__ import annotations

import stat
from pathlib import Path

from gguf_audit.policies import PolicyError

__all__ = ["read_file"]

#: What the process holds already: a shell's ``<(...)``, or stdin.
_HELD = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def read_file(path: Path, *, limit_bytes: int) -> bytes:
    """Return the content of a file; PolicyError where it can't be read, or is too long.

    A named pipe is refused: nobody may ever write to it.
    """
    try:
        if stat.S_ISFIFO(path.stat().st_mode) and not str(path).startswith(_HELD):
            raise PolicyError(f"can't read {path}: it is a named pipe")
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)
    except OSError as error:
        raise PolicyError(f"can't read {path}: {error.strerror}") from None
    if len(content) > limit_bytes:
        raise PolicyError(f"{path} has more than {limit_bytes:,} bytes, more are not read")
    return content

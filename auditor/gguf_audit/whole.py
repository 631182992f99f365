"""Writes a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: Path) -> Generator[Path, None, None]:
    """Give a path beside ``path``: what is written to it takes that one's place in the end.

    If that can't be, nothing of it is left.
    """
    # A run that was killed may have left one of the same process number.
    unfinished = path.with_name(f".gguf-audit.{os.urandom(8).hex()}.tmp")
    try:
        yield unfinished
        unfinished.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise

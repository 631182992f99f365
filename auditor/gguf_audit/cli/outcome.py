"""How a command ends: its output, its complaints, its exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TextIO

import typer

from gguf_audit.errors import AuditError
from gguf_audit.whole import replacing

__all__ = ["complain", "end", "open_special", "print_out", "write_out"]

#: Something that was asked for was not audited.
_NOT_AUDITED = 3
#: What a shell reports for a command that SIGINT ended.
_INTERRUPTED = 130


def end(work: Callable[[], int], *, debug: bool) -> NoReturn:
    """Do a command's work and exit with its code, whatever becomes of it."""
    try:
        code = work()
    except typer.BadParameter:
        raise
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
    except Exception as error:
        # The last line of defence: a gate must see 3, never a traceback's 1.
        if debug:
            traceback.print_exc()
        with contextlib.suppress(Exception):
            # What is broken may be what complains.
            complain(_reason(error))
        raise typer.Exit(_NOT_AUDITED) from None
    raise typer.Exit(code)


def _reason(error: Exception) -> str:
    match error:
        case AuditError():
            return error.message
        case OSError():
            return str(error)
        case _:
            return f"internal error: {type(error).__name__}: {error} (--debug tells where)"


def complain(message: str) -> None:
    """Say on stderr, in one line, why there is no result."""
    from gguf_audit.cli.terminal import is_utf8
    from gguf_audit.report.style import Style

    with contextlib.suppress(OSError):
        text = Style(unicode=is_utf8(sys.stderr)).safe(message, limit=2000)
        sys.stderr.write(f"gguf-audit: {text}\n")


def print_out(text: str) -> None:
    """Print to stdout; a reader that has gone away is no fault of the audit."""
    stream: TextIO | None = sys.stdout
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # The interpreter flushes once more on its way out and would complain.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_special(path: Path) -> int | None:
    """Open a device or a pipe before the work begins; ``None`` for an ordinary file.

    A pipe that nobody reads would let the open wait for ever, so it is refused. What the
    process holds already, ``/dev/stdout`` say, is written to as it is, be it a file: what
    stands in it stays. Raises OSError.
    """
    held = _held(path)
    if held is not None:
        return os.dup(held)
    if not path.exists() or path.is_file():
        return None
    if not (path.is_char_device() or path.is_fifo()):
        raise OSError(errno.EINVAL, "neither a file nor a device to write to", str(path))
    descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    return descriptor


def _held(path: Path) -> int | None:
    """Return the descriptor that a name below ``/dev`` or ``/proc`` stands for."""
    names = [path, path.readlink()] if path.is_symlink() else [path]
    for name in names:
        if str(name.parent) in ("/dev/fd", "/proc/self/fd") and name.name.isdigit():
            return int(name.name)
    return None


def write_out(path: Path, text: str, special: int | None = None) -> None:
    """Write a file whole or not at all; what ``open_special`` opened, as far as it takes it.

    Raises OSError.
    """
    try:
        if special is None:
            # What a link names is written, and the link stays one.
            with replacing(Path(os.path.realpath(path))) as unfinished:
                unfinished.write_text(text, encoding="utf-8", newline="\n")
        else:
            with (
                contextlib.suppress(BrokenPipeError),
                open(special, "w", encoding="utf-8", newline="\n") as file,  # noqa: PTH123 - no path
            ):
                file.write(text)
    except OSError as error:
        # Its own path, if it has one, is that of the unfinished file.
        raise OSError(f"can't write {str(path)!r}: {error.strerror}") from error

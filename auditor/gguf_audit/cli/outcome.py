"""How a command ends: its output, its complaints, its exit code."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TextIO

import typer

from gguf_audit.errors import AuditError

__all__ = ["complain", "end", "print_out", "write_out"]

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
        if isinstance(error, AuditError):
            complain(error.message)
        elif isinstance(error, OSError):
            complain(str(error))
        else:
            complain(f"internal error: {type(error).__name__}: {error} (--debug tells where)")
        raise typer.Exit(_NOT_AUDITED) from None
    raise typer.Exit(code)


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


def write_out(path: Path, text: str) -> None:
    """Write a file whole or not at all; a device or a pipe is written to directly.

    Raises OSError.
    """
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        path.write_text(text, encoding="utf-8")
        return
    # What a link names is written, and the link stays one.
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f".gguf-audit.{os.getpid()}.tmp")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        unfinished.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise

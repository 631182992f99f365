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

__all__ = ["complain", "end", "exit_code", "open_special", "print_out", "write_out"]

#: Something that was asked for was not audited.
_NOT_AUDITED = 3
#: What a shell reports for a command that SIGINT ended.
_INTERRUPTED = 130


def end(work: Callable[[], int], *, debug: bool) -> NoReturn:
    """Do a command's work and exit with its code, whatever becomes of it."""
    try:
        code = work()
    except typer.BadParameter as error:
        # Nobody vouches for the name of a path, or a key in a policy of somebody else's.
        error.message = _line(error.message, sys.stderr)
        raise
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
    except Exception as error:
        # The last line of defence: a gate must see 3, never a traceback's 1.
        with contextlib.suppress(Exception):
            # What is broken may be what complains.
            if debug:
                traceback.print_exc()
            complain(_reason(error))
        raise typer.Exit(_NOT_AUDITED) from None
    raise typer.Exit(code)


def exit_code(app: Callable[[], object]) -> int | str | None:
    """Run the program and return its exit code, whether or not what it says can be written.

    What typer says by itself is help, the version, wrong usage and completion.
    """
    try:
        app()
    except SystemExit as exit_:
        # typer says 1 where nobody reads its help any more.
        return 0 if isinstance(exit_.__context__, BrokenPipeError) else exit_.code
    except BrokenPipeError as error:
        # Wrong usage stays that, whoever reads what was wrong with it.
        return getattr(error.__context__, "exit_code", 0)
    except OSError as error:
        complain(_reason(error))
        return _NOT_AUDITED
    finally:
        _let_go(sys.stdout)
        _let_go(sys.stderr)
    return 0


def _let_go(stream: TextIO | None) -> None:
    """Give up what a stream doesn't take: the interpreter would try again, and end with 120."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _reason(error: Exception) -> str:
    match error:
        case AuditError():
            return error.message
        case OSError(strerror=str(why), filename=path):
            return why if path is None else f"{why}: {str(path)!r}"
        case OSError():
            return str(error)
        case _:
            return f"internal error: {type(error).__name__}: {error} (--debug tells where)"


def complain(message: str) -> None:
    """Say on stderr, in one line, why there is no result."""
    stream: TextIO | None = sys.stderr
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.write(f"gguf-audit: {_line(message, stream)}\n")


def _line(message: str, stream: TextIO | None) -> str:
    """Return a message as one line that a terminal only shows."""
    from gguf_audit.cli.terminal import is_utf8
    from gguf_audit.report.style import Style

    return Style(unicode=stream is None or is_utf8(stream)).safe(message, limit=2000)


def print_out(text: str) -> None:
    """Print to stdout; a reader that has gone away is no fault of the audit. Raises OSError."""
    stream: TextIO | None = sys.stdout
    if stream is None:  # Whoever started us has closed it, and waits for nothing.
        raise OSError("can't write to stdout: it is closed")
    with contextlib.suppress(BrokenPipeError):
        stream.write(text)
        stream.flush()


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

"""A bar on stderr while many files are audited, for people alone."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["progress_bar"]

Told = Callable[[int, int, str], None]


@contextmanager
def progress_bar(stream: TextIO | None, *, wanted: bool) -> Generator[Told | None, None, None]:
    """Yield what to tell of the files done, ``None`` where nobody would look at it.

    It is drawn when there is more than one file, and gone when the report comes.
    """
    if not wanted or stream is None or not stream.isatty():
        yield None
        return
    # 0.1 s, which only somebody who waits at a terminal pays.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from gguf_audit.cli.terminal import is_utf8
    from gguf_audit.report.style import Style

    style = Style(unicode=is_utf8(stream))
    # Drawn when it is told something: a thread that draws would be there when processes fork.
    bar = Progress(
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
        console=Console(file=stream),
        auto_refresh=False,
        transient=True,
    )
    task = bar.add_task("")

    def told(done: int, total: int, name: str) -> None:
        if total > 1:
            bar.start()
            bar.update(
                task, completed=done, total=total, description=style.safe(name), refresh=True
            )

    try:
        yield told
    finally:
        bar.stop()

"""What the reader of stdout can show: a terminal's width and colours, or a pipe."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TextIO

from gguf_audit.report.style import Detail, Style

__all__ = ["is_utf8", "style_of"]

#: Longer lines are hard to read, however wide the terminal is.
_WIDEST = 110


def style_of(
    detail: Detail, stream: TextIO | None, environ: Mapping[str, str] = os.environ
) -> Style:
    """Return how to set text for a stream.

    Colour stands on a terminal alone; ``NO_COLOR`` switches it off, ``FORCE_COLOR``
    on, when they are set to anything, and ``TERM=dumb`` has none.
    """
    if stream is None:
        return Style(detail=detail)
    terminal = stream.isatty()
    color = terminal and environ.get("TERM") != "dumb" and os.name != "nt"
    if environ.get("FORCE_COLOR"):
        color = True
    if environ.get("NO_COLOR"):
        color = False
    width = min(shutil.get_terminal_size().columns, _WIDEST) if terminal else None
    return Style(detail=detail, color=color, width=width, unicode=is_utf8(stream))


def is_utf8(stream: TextIO) -> bool:
    """Tell whether a stream takes any character."""
    return (stream.encoding or "").lower().replace("-", "").replace("_", "") == "utf8"

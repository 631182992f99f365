"""``gguf-audit show``: what a file says, or what a right conversion would."""

from __future__ import annotations

import enum
import sys
from typing import Annotated

import typer

from gguf_audit.cli.options import Debug, Offline, settle_hub
from gguf_audit.cli.outcome import end, print_out

__all__ = ["HELP", "command"]

HELP = """\
Show effective values with their origin, and the cache by layer.

TARGET is a file, any shard of a split set, a folder of models, or what else check takes,
of a repository one model: owner/repo:file.gguf or owner/repo:Q4_K_M. REF is what check
takes as --against, but auto; owner/repo alone is one. Of a reference it shows what a right
conversion writes and what llama.cpp then keeps. A value's origin is its key, the default
that llama.cpp takes without one, a tensor's shape, the file's own header, or the reference.

\b
Examples:
  gguf-audit show model.gguf
  gguf-audit show google/gemma-3-270m --offline
  gguf-audit show owner/repo:Q4_K_M
  gguf-audit show model.gguf --format json

\b
Exit codes:
  0  shown
  2  wrong usage
  3  something could not be read, or its architecture is unknown
"""


class Format(enum.StrEnum):
    """What is written."""

    TEXT = "text"
    JSON = "json"


def command(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET|REF", help="A model or a reference.", show_default=False),
    ],
    format: Annotated[  # noqa: A002 - the option's name
        Format, typer.Option(help="What to write.")
    ] = Format.TEXT,
    offline: Offline = False,
    debug: Debug = False,
) -> None:
    """Read, print, exit."""
    settle_hub(offline=offline)
    end(lambda: _show(target, format), debug=debug)


def _show(target: str, wanted: Format) -> int:
    from gguf_audit.report import show as report
    from gguf_audit.showing import show

    shown = show(target)
    if wanted is Format.JSON:
        text = report.render_json(shown)
    else:
        from gguf_audit.cli.terminal import style_of
        from gguf_audit.report.style import Detail

        text = report.render_text(shown, style_of(Detail.NORMAL, sys.stdout))
    print_out(text)
    return shown.exit_code

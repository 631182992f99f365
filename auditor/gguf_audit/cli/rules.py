"""``gguf-audit rules``: the catalogue, or one rule's page."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gguf_audit.cli.options import Debug
from gguf_audit.cli.outcome import end, print_out

__all__ = ["HELP", "command"]

HELP = """\
Show every rule, one family, or one rule's page.

\b
  gguf-audit rules          the whole catalogue
  gguf-audit rules KV       the rules about the cache
  gguf-audit rules KV101    what it does, why it matters, how to fix it
"""


def command(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE]", help="A code, a name or a family.", show_default=False),
    ] = None,
    debug: Debug = False,
) -> None:
    """Print the catalogue or a page."""
    end(lambda: _rules(code), debug=debug)


def _rules(code: str | None) -> int:
    from gguf_audit import catalogue
    from gguf_audit.cli.terminal import style_of
    from gguf_audit.report import pages
    from gguf_audit.report.style import Detail

    rules = catalogue.load()
    try:
        wanted = catalogue.choose(rules, select=[code] if code else [])
    except catalogue.UnknownRuleError as error:
        raise typer.BadParameter(str(error), param_hint="CODE") from None
    style = style_of(Detail.NORMAL, sys.stdout)
    if code is not None and len(wanted) == 1 and code.upper() not in map(catalogue.family, wanted):
        text = pages.page(next(iter(wanted.values())))
    else:
        text = pages.table(wanted, style)
    print_out("".join(style.safe(line, limit=None) + "\n" for line in text.splitlines()))
    return 0

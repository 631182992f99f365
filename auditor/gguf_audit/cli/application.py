"""The command ``gguf-audit`` and its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer

from gguf_audit import __version__
from gguf_audit.cli import check, rules, show

__all__ = ["app"]

_HELP = """\
Check a GGUF file against the checkpoint it was converted from.

The file's own header, tokenizer, template and tensor index are held against the
reference and against what llama.cpp makes of them: above all, whether the file
makes the runtime keep the cache that the architecture needs.

\b
  gguf-audit check model.gguf --against owner/repo
  gguf-audit rules KV101
"""

# No pretty tracebacks: they print locals, tokens among them. No markup: it costs an
# import of rich for every --help.
app = typer.Typer(
    name="gguf-audit",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gguf-audit {__version__}")
        raise typer.Exit


@app.callback(help=_HELP)
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command("check", help=check.HELP)(check.command)
app.command("rules", help=rules.HELP)(rules.command)
app.command("show", help=show.HELP)(show.command)

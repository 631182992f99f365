"""The reports of one audit: what each is written as, and where it goes."""

from __future__ import annotations

import enum
import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import typer
from msgspec import Struct

from gguf_audit.cli.outcome import open_special, print_out, write_out
from gguf_audit.errors import SourceError

if TYPE_CHECKING:
    from gguf_audit.catalogue import Page
    from gguf_audit.report.places import Checkout
    from gguf_audit.report.style import Style
    from gguf_audit.rule import Severity
    from gguf_audit.verdict import Report

__all__ = ["Format", "Output", "Place", "open_outputs", "render"]

#: How an earlier report begins, or a file that has nothing to lose. Compiled where one is there.
_REPORT = (
    r"\Z|(CLEAN|PARTIAL|ERROR|WARNING|INFO|NOT AUDITED)  |[0-9,]+ (model|file)s?[:,] "
    r'|\{\s*"version": 1,\s*"tool": \{\s*"name": "gguf-audit"'
    r'|\{\s*"\$schema": "[^"]*sarif[^"]*",\s*"version": "2.1.0",\s*"runs": \[\s*\{\s*'
    r'"tool": \{\s*"driver": \{\s*"name": "gguf-audit"'
    r"|<\?xml [^>]*>\s*<testsuites name=\"gguf-audit\"|## gguf-audit\n"
    r"|<!doctype html>\s<html lang=\"en\"><head>.*<title>gguf-audit: "
    r"|::(error|warning|notice) (file=|title=)|nothing was audited: "
)


class Format(enum.StrEnum):
    """What a report is written as."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    MARKDOWN = "markdown"
    HTML = "html"


class Place(Struct, frozen=True, kw_only=True):
    """A file or a device to write to, looked at before the work begins."""

    path: Path
    #: A device or a pipe, opened.
    special: int | None

    def write(self, text: str) -> None:
        """Write the text, to a file whole or not at all. Raises OSError."""
        write_out(self.path, text, self.special)


class Output(Struct, frozen=True, kw_only=True):
    """A report that is asked for."""

    format: Format
    #: ``None`` is stdout.
    place: Place | None

    def write(self, text: str) -> None:
        """Write the report. Raises OSError."""
        if self.place is None:
            print_out(text)
        else:
            self.place.write(text)


def open_outputs(
    format: Format,  # noqa: A002 - the option's name
    output: Path | None,
    more: list[str],
    sums: Path | None,
) -> tuple[list[Output], Place | None]:
    """Return the reports of ``--format``, ``-o`` and ``--report``, and the place of ``--sums``.

    Raises BadParameter for what can't be written, for what is named twice, and for what holds
    anything but a report.
    """
    taken: set[str] = set()

    def opened(option: str, path: Path) -> Place:
        place = _open(option, path)
        file = os.path.realpath(path)
        if place.special is None and file in taken:
            raise typer.BadParameter(f"{str(path)!r} can't hold two reports", param_hint=option)
        taken.add(file)
        return place

    first = None if output is None else opened("-o", output)
    outputs = [Output(format=format, place=first)]
    for each in more:
        kind, path = _named(each)
        outputs.append(Output(format=kind, place=opened("--report", path)))
    return outputs, None if sums is None else opened("--sums", sums)


def _named(report: str) -> tuple[Format, Path]:
    name, _, file = report.partition("=")
    if name not in {*Format} or file in ("", "-"):
        expected = f"expected FORMAT=FILE with a FORMAT of {', '.join(Format)}"
        raise typer.BadParameter(f"{expected}; got {report!r}", param_hint="--report")
    return Format(name), Path(file)


def _open(option: str, path: Path) -> Place:
    try:
        special = open_special(path)
        if special is None:
            _require_replaceable(path)
    except OSError as error:
        why = "no process reads it" if error.errno == errno.ENXIO else error.strerror
        raise typer.BadParameter(f"can't write {str(path)!r}: {why}", param_hint=option) from None
    except SourceError as error:
        raise typer.BadParameter(error.message, param_hint=option) from None
    return Place(path=path, special=special)


def _require_replaceable(path: Path) -> None:
    """Refuse a file that could not be put there, or that would take another's place."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise OSError(errno.ENOENT, "its folder is not there")
    if not os.access(folder, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    # Neither a model nor a part of its reference, named, beside it or linked to.
    if path.exists() and not re.match(_REPORT, _beginning(path)):
        raise OSError(errno.EEXIST, "it is no report, and writing one would destroy it")


def _beginning(path: Path) -> str:
    from gguf_audit.sources.local import FileSource

    file = FileSource(path)
    return file.read(0, min(file.size, 400)).decode("utf-8", "replace")


def render(
    report: Report,
    format: Format,  # noqa: A002 - the option's name
    *,
    pages: Mapping[str, Page],
    style: Style,
    fail_on: Severity | None,
    allow_unknown: bool,
) -> str:
    """Return the report in a format; what the others need is not imported."""
    match format:
        case Format.TEXT:
            from gguf_audit.report import text

            return text.render(report, pages=pages, style=style)
        case Format.JSON:
            from gguf_audit.report import json

            return json.render(report)
        case Format.JSONL:
            from gguf_audit.report import json

            return json.render_lines(report)
        case Format.SARIF:
            from gguf_audit.report import sarif

            return sarif.render(report, pages=pages, checkout=_checkout())
        case Format.JUNIT:
            from gguf_audit.report import junit

            return junit.render(report, pages=pages, fail_on=fail_on, allow_unknown=allow_unknown)
        case Format.GITHUB:
            from gguf_audit.report import github

            return github.render(report, pages=pages, checkout=_checkout(), style=style)
        case Format.MARKDOWN:
            from gguf_audit.report import markdown

            return markdown.render(report, pages=pages, style=style)
        case Format.HTML:
            from gguf_audit.report import html

            return html.render(report, pages=pages, detail=style.detail)
        case _:
            assert_never(format)


def _checkout() -> Checkout:
    """Return where the repository is whose files are audited: a runner says, or it is here."""
    from gguf_audit.report.places import Checkout

    try:
        folder = str(Path.cwd())
    except OSError:
        folder = ""  # It was removed: what could be read is an absolute path.
    root = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or folder
    inside = not folder or Path(folder).is_relative_to(root)
    return Checkout(root=root if inside else folder, folder=folder)

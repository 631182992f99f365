"""Files and folders of this machine."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from gguf_audit.errors import SourceError, UnsupportedError
from gguf_audit.targets._located import Located
from gguf_audit.where import Where

__all__ = ["ENDING", "local"]

ENDING = ".gguf"
#: ``a.gguf.part1of2``: what publishers cut a file into that is too large for the Hub.
_PART = re.compile(
    r"(?P<whole>.+\.gguf)\.part(?P<number>[0-9]{1,4})of(?P<count>[0-9]{1,4})", re.IGNORECASE
)


def local(target: str) -> Iterator[Located]:
    """Yield the file that a path means, or every GGUF file in a folder.

    Links to folders are named, not followed: they may lead anywhere, or round in
    circles.
    """
    try:
        is_folder = Path(target).is_dir()
    except OSError as error:
        yield Located(target, SourceError(f"can't read {target}: {error.strerror}"))
        return
    if not is_folder:
        part = _PART.fullmatch(Path(target).name)
        there = part is not None and Path(target).is_file()
        yield _in_parts(target, part) if there and part is not None else Located(target)
        return
    located = False
    for each in _below(target):
        located = True
        yield each
    if not located:
        # Beside others they are what a publisher has cut, and nobody's mistake.
        parts = tuple(_cut(target))
        yield from parts or (Located(target, SourceError(f"{target} has no {ENDING} file in it")),)


def _below(folder: str) -> Iterator[Located]:
    unread: list[OSError] = []
    for root, folders, files in os.walk(folder, onerror=unread.append):
        folders.sort()
        for name in folders:
            link = str(Path(root) / name)
            if Path(link).is_symlink():
                yield Located(link, SourceError(f"{link} is a link to a folder: name it itself"))
        for name in sorted(files):
            if name.lower().endswith(ENDING):
                yield Located(str(Path(root) / name), found=True, listed=folder)
    for error in unread:
        name = os.fsdecode(error.filename)
        yield Located(name, SourceError(f"can't list {name}: {error.strerror}"))


def _cut(folder: str) -> Iterator[Located]:
    """Yield the first part of every file that is in parts in a folder."""
    names: list[str] = []
    with contextlib.suppress(OSError):  # What can't be listed any more has no file in it.
        names = sorted(each.name for each in Path(folder).iterdir())
    firsts: dict[str, re.Match[str]] = {}
    for part in filter(None, map(_PART.fullmatch, names)):
        first = firsts.setdefault(part["whole"], part)
        if int(part["number"]) < int(first["number"]):
            firsts[part["whole"]] = part
    for part in firsts.values():
        yield _in_parts(str(Path(folder) / part[0]), part)


def _in_parts(name: str, part: re.Match[str]) -> Located:
    """Return a part of a file with the reason why it isn't read."""
    whole, count, quoted = part["whole"], part["count"], shlex.quote(part["whole"])
    message = (
        f"{part[0]} is one of {count} parts of {whole}: concatenate the parts,"
        f" cat {quoted}.part{{1..{count}}}of{count} > {quoted}"
    )
    return Located(name, UnsupportedError(message, where=Where(file=name)))

"""Files and folders of this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from gguf_audit.errors import SourceError, UnsupportedError
from gguf_audit.naming import Part, part_of
from gguf_audit.targets._located import Located
from gguf_audit.where import Where

__all__ = ["ENDING", "local"]

ENDING = ".gguf"


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
        part = part_of(target)
        yield Located(target) if part is None or part.number == 1 else _later(target, part)
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
    firsts: dict[str, tuple[int, str]] = {}
    for name in names:
        part = part_of(name)
        if part is not None:
            first = firsts.setdefault(part.whole, (part.number, name))
            firsts[part.whole] = min(first, (part.number, name))
    for _, name in firsts.values():
        yield from local(str(Path(folder) / name))


def _later(name: str, part: Part) -> Located:
    """Return another part than the first, in which no header is, with the reason why."""
    if not Path(name).is_file():
        return Located(name)
    message = f"{Path(name).name} is part {part.number} of {part.count}: {part.advice}"
    return Located(name, UnsupportedError(message, where=Where(file=name)))

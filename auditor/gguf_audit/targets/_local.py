"""Files and folders of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gguf_audit.errors import SourceError
from gguf_audit.targets._located import Located

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
        yield Located(target)
        return
    located = False
    for each in _below(target):
        located = True
        yield each
    if not located:
        yield Located(target, SourceError(f"{target} has no {ENDING} file in it"))


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

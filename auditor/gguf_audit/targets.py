"""Which files a target means: itself, or every model below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gguf_audit.errors import AuditError, SourceError

__all__ = ["Located", "locate"]

_ENDING = ".gguf"


@dataclass(frozen=True, slots=True)
class Located:
    """One file of a target, or the reason why there is none."""

    name: str
    error: AuditError | None = None
    #: Found below a folder, where a shard that its set has covered is no other model.
    found: bool = False


def locate(target: str) -> Iterator[Located]:
    """Yield the files that a target means: itself, or every GGUF file in a folder.

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
        yield Located(target, SourceError(f"{target} has no {_ENDING} file in it"))


def _below(folder: str) -> Iterator[Located]:
    unread: list[OSError] = []
    for root, folders, files in os.walk(folder, onerror=unread.append):
        folders.sort()
        for name in folders:
            link = str(Path(root) / name)
            if Path(link).is_symlink():
                yield Located(link, SourceError(f"{link} is a link to a folder: name it itself"))
        for name in sorted(files):
            if name.lower().endswith(_ENDING):
                yield Located(str(Path(root) / name), found=True)
    for error in unread:
        name = os.fsdecode(error.filename)
        yield Located(name, SourceError(f"can't list {name}: {error.strerror}"))

"""Which files a target means: itself, or every model below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gguf_audit.errors import AuditError, SourceError
from gguf_audit.formats.gguf import shard_name

__all__ = ["Located", "locate"]


@dataclass(frozen=True, slots=True)
class Located:
    """One model of a target, or the reason why there is none."""

    name: str
    error: AuditError | None = None


def locate(target: str) -> Iterator[Located]:
    """Yield the models that a target means: a file, or every model in a folder."""
    path = Path(target)
    if not path.is_dir():
        yield Located(target)
        return
    unread: list[OSError] = []
    found = False
    for name in _models_in(path, unread):
        found = True
        yield Located(name)
    for error in unread:
        found = True
        name = os.fsdecode(error.filename)
        yield Located(name, SourceError(f"can't list {name}: {error.strerror}"))
    if not found:
        yield Located(target, SourceError(f"{target} has no .gguf file in it"))


def _models_in(folder: Path, unread: list[OSError]) -> Iterator[str]:
    """Yield every GGUF file below a folder, of a split set only its first shard here.

    Folders that can't be listed are added to ``unread``.
    """
    sets: set[tuple[str, str, int]] = set()
    for root, folders, files in os.walk(folder, onerror=unread.append):
        folders.sort()
        for name in sorted(files):
            if not name.endswith(".gguf"):
                continue
            shard = shard_name(name)
            if shard is not None:
                identity = (root, shard.stem, shard.count)
                if identity in sets:
                    continue
                sets.add(identity)
            yield str(Path(root) / name)

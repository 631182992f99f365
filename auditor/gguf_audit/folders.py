"""What stands beside the models of a folder or a repository, where that is known.

Nobody knows it of a file that was named by itself, nor of one that was downloaded: what is
missing there was not wanted. On this machine each folder with models is one of its own; a
repository, or a folder elsewhere, is one with all that is below it.

    upload/README.md, upload/model-Q4_K_M.gguf, upload/BF16/model-BF16-00001-of-00002.gguf
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from gguf_audit.errors import AuditError, LimitError
from gguf_audit.evidence import FolderSubject, SetMember
from gguf_audit.examination import Examined
from gguf_audit.gguf import Card
from gguf_audit.limits import LIMITS
from gguf_audit.sets import home_of
from gguf_audit.sources import LocalTree, Tree
from gguf_audit.sources._hub_cache import is_download
from gguf_audit.targets import Located

__all__ = ["folders_of"]


def folders_of(
    target: Sequence[tuple[Located, Examined]], *, published: bool
) -> Iterator[FolderSubject]:
    """Yield the folders of one target that models are in and that are known.

    ``target`` is all that was found. ``published`` says that no folder lacks what is to be
    published, and that a card on the Hub is worth a request.
    """
    groups: dict[str, list[tuple[Located, SetMember]]] = {}
    for located, examined in target:
        if _is_known(located) and isinstance(examined.member, SetMember):
            groups.setdefault(_place(located), []).append((located, examined.member))
    projectors = {_place(located) for located, each in target if _is_projector(located, each)}
    # What can't be read may be one.
    unread = {_place(located) for located, each in target if not each.report.files}
    near = {_absolute(each) for each in projectors | unread}
    above = {parent for place in near for parent in _and_above(place)}
    names = [located.name for located, _ in target]
    for folder, models in groups.items():
        first = models[0][0]
        if first.source is None and any(is_download(located.name) for located, _ in models):
            continue
        path = _absolute(folder)
        yield FolderSubject(
            folder=folder or ".",
            models=tuple(model for _, model in models),
            has_projector=(
                # One in a folder without models is nobody's, so anybody's.
                not projectors <= groups.keys()
                or path in above
                or any(each in near for each in _and_above(path))
            ),
            published=published,
            load_names=partial(_names, folder, first, names),
            load_card=partial(_card, folder, first, published=published),
        )


def _place(located: Located) -> str:
    """Return what a file is published in, if it is."""
    return home_of(located.name) if located.source is None else located.listed


def _is_known(located: Located) -> bool:
    """Tell whether all that stands beside a file was found with it."""
    if not located.listed or located.source is not None:
        return bool(located.listed)
    return _is_below(_place(located), located.listed)


def _is_below(folder: str, other: str) -> bool:
    return Path(_absolute(folder)).is_relative_to(_absolute(other))


def _absolute(path: str) -> str:
    """Return where a path leads, or an address as if it were one, to compare it with others."""
    try:
        return os.path.abspath(path)  # noqa: PTH100 - links are not followed
    except OSError:
        return os.path.normpath(path)  # The working directory is gone, and nothing is in it.


def _and_above(path: str) -> Iterator[str]:
    yield path
    yield from map(str, Path(path).parents)


def _is_projector(located: Located, examined: Examined) -> bool:
    _, name = os.path.split(located.name)
    return examined.report.kind == "mmproj" or "mmproj" in name.lower()


def _names(folder: str, first: Located, target: Sequence[str]) -> frozenset[str]:
    """Return the names of all files in a folder and below, of whatever kind they are.

    Publishers cut a file into parts that aren't called a model. LimitError where that would
    take too long: each folder inside another is gone through once more.
    """
    if first.source is None:
        found: set[str] = set()
        entries = 0
        for _, folders, files in os.walk(folder or "."):
            # Those of version control hold thousands of files and none by its name.
            folders[:] = (each for each in folders if not each.startswith("."))
            entries += len(folders) + len(files)
            if entries > LIMITS.listed_files:
                raise LimitError(
                    f"{folder or '.'} has more than {LIMITS.listed_files} files and folders below"
                    " it: what its card lists isn't looked for among them"
                )
            found.update(files)
        return frozenset(found)
    names = [*target]
    with contextlib.suppress(AuditError):  # The models are known all the same.
        names += _tree(folder, first).names()
    return frozenset(name.rpartition("/")[2] for name in names)


def _card(folder: str, first: Located, *, published: bool) -> Card | None:
    # Elsewhere a card is one more request.
    if first.tree is not None and not published:
        return None
    from gguf_audit.formats.readme import read_card  # only who asks for a card pays for it

    try:
        return read_card(_tree(folder, first))
    except AuditError:
        return None


def _tree(folder: str, first: Located) -> Tree:
    if first.tree is not None:
        return first.tree
    return LocalTree(folder or ".") if first.path is None else LocalTree(Path(first.path).parent)

"""The local Hub cache, read and filled without huggingface_hub.

``models--owner--repo/{refs/<revision>, snapshots/<commit>/<name>, blobs/<hash>}``: the
layout that huggingface_hub documents and keeps (file_download.py, "cache_dir").
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from gguf_audit.errors import AuditError
from gguf_audit.sources._names import contained
from gguf_audit.sources.local import FileSource, LocalTree
from gguf_audit.whole import replacing

__all__ = [
    "COMMIT",
    "Snapshot",
    "cache_folder",
    "find_snapshot",
    "is_download",
    "keep",
    "keep_absent",
]

COMMIT = re.compile(r"[0-9a-f]{40}")
#: A ref holds a commit and perhaps a line break.
_REF_BYTES = 64


class Snapshot(Struct, frozen=True, kw_only=True):
    """What the cache holds of one commit: some of its files, seldom all."""

    commit: str
    tree: LocalTree
    #: Files that the commit is known not to have; of others nobody knows. ``None`` where all
    #: that it has is here.
    absent: frozenset[str] | None
    #: False where no ref tells which commit was meant, and this is the newest one here.
    meant: bool


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where huggingface_hub keeps its cache (constants.py).

    Where nobody knows whose home it would be in, as in a container with a user that has no
    name, that is where nothing is and nothing can be put.
    """
    home = environment.get("XDG_CACHE_HOME", str(Path("~", ".cache")))
    home = environment.get("HF_HOME", str(Path(home, "huggingface")))
    folder = environment.get("HUGGINGFACE_HUB_CACHE", str(Path(home, "hub")))
    path = Path(os.path.expandvars(environment.get("HF_HUB_CACHE", folder)))
    try:
        return path.expanduser()
    except RuntimeError:
        return Path(os.devnull)


def is_download(path: str) -> bool:
    """Tell whether huggingface_hub has fetched a file: beside it may stand as many as it likes.

    Into its cache, with links from elsewhere, or into a folder that it keeps a note in
    (``_local_folder.py``, ``.cache/huggingface/download``).
    """
    file = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
    return _is_blob(Path(os.path.realpath(path))) or any(
        (folder.name == "snapshots" and folder.parent.name.startswith("models--"))
        or _note(folder, file).is_file()
        for folder in file.parents
    )


def _is_blob(file: Path) -> bool:
    return file.parent.name == "blobs" and file.parent.parent.name.startswith("models--")


def _note(folder: Path, file: Path) -> Path:
    note = f"{file.relative_to(folder)}.metadata"
    return folder / ".cache" / "huggingface" / "download" / note


def find_snapshot(
    repo: str, revision: str | None, *, cache: Path, holding: str = "config.json"
) -> Snapshot | None:
    """Return the cached files of a repository's revision, ``None`` where there are none.

    Without a revision ``main`` is meant; a cache that doesn't say which commit that is
    has only been asked for commits, and the newest of these that holds such a file is
    taken.
    """
    folder = _folder_of(repo, cache)
    try:
        commit = _commit_of(folder, revision or "main")
        meant = commit is not None
        if commit is None and revision is None:
            commit = _newest(folder, holding)
        if commit is None:
            return None
        tree = LocalTree(folder / "snapshots" / commit, follow_links=True)
        missing = folder / ".no_exist" / commit
        absent = frozenset(LocalTree(missing).names()) if missing.is_dir() else frozenset[str]()
        whole = _is_whole(folder, commit)
    except (OSError, AuditError):
        return None  # An unreadable cache has nothing for us.
    return Snapshot(commit=commit, tree=tree, absent=None if whole else absent, meant=meant)


def _is_whole(folder: Path, commit: str) -> bool:
    """Tell whether a commit was downloaded with everything that it has.

    Only who wants all of it gets a ``.gitattributes``, and weights with it; a download that
    goes on, or broke off, leaves an unfinished blob.
    """
    snapshot = folder / "snapshots" / commit
    return (
        (snapshot / ".gitattributes").exists()
        and any(snapshot.glob("*.safetensors"))
        and not any((folder / "blobs").glob("*.incomplete"))
    )


def keep(content: bytes, repo: str, commit: str, name: str, *, cache: Path) -> None:
    """Put a file of a commit into the cache, whole or not at all, over nothing.

    In the snapshot itself, as huggingface_hub does where there are no symbolic links. A
    cache that can't be written to is done without.
    """
    path = _folder_of(repo, cache) / "snapshots" / commit / contained(name)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(path):
            with replacing(path) as unfinished:
                unfinished.write_bytes(content)


def keep_absent(names: Iterable[str], repo: str, commit: str, *, cache: Path) -> None:
    """Note of files that a commit doesn't have them, as huggingface_hub does."""
    folder = _folder_of(repo, cache) / ".no_exist" / commit
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / contained(name)).touch()


def _folder_of(repo: str, cache: Path) -> Path:
    return cache / f"models--{repo.replace('/', '--')}"


def _commit_of(folder: Path, revision: str) -> str | None:
    if COMMIT.fullmatch(revision):
        return revision if (folder / "snapshots" / revision).is_dir() else None
    ref = folder / "refs" / contained(revision)
    if not ref.is_file():
        return None
    source = FileSource(ref)
    commit = source.read(0, min(source.size, _REF_BYTES)).decode("ascii", "replace").strip()
    known = COMMIT.fullmatch(commit) and (folder / "snapshots" / commit).is_dir()
    return commit if known else None


def _newest(folder: Path, holding: str) -> str | None:
    snapshots = folder / "snapshots"
    if not snapshots.is_dir():
        return None
    found = [
        entry
        for entry in snapshots.iterdir()
        if COMMIT.fullmatch(entry.name) and any(entry.glob(holding))
    ]
    return max(found, key=lambda entry: entry.stat().st_mtime_ns).name if found else None

"""Holds a repository of the Hub against the folder that it was uploaded from.

The Hub lists the size of every file and the sha256 of every large one, so nothing is
downloaded; the local files are read whole.
"""

from __future__ import annotations

from pathlib import Path

from gguf_audit.errors import SourceError
from gguf_audit.evidence import UploadedFile, UploadSubject
from gguf_audit.sources import FileSource, LocalTree
from gguf_audit.sources.digest import file_sha256
from gguf_audit.sources.hub import HubTree
from gguf_audit.sources.hub_ids import hub_id, hub_reference

__all__ = ["compared", "same"]

_ENDING = ".gguf"


def compared(tree: HubTree, name: str, folder: str) -> UploadSubject:
    """Return what repository and folder say of the same files; raises SourceError.

    Those are the GGUF files of both, and what else the Hub has the sha256 of. A file of
    another size isn't read.
    """
    local, listed = _files(folder), frozenset(tree.files())
    both = {file for file in listed if _is_model(file) or (tree.sha256(file) and file in local)}
    names = sorted(both | {file for file in local if _is_model(file)})
    files = [_compared(tree, file, local.get(file), listed=file in listed) for file in names]
    named = hub_id(hub_reference(name) or "")
    return UploadSubject(
        repository=name,
        repo=tree.repo,
        revision=None if named is None else named.revision,
        folder=folder,
        files=tuple(files),
    )


def same(subject: UploadSubject) -> dict[str, str]:
    """Return the files of which repository and folder have the same bytes, and their paths."""
    return {
        file.name: str(Path(subject.folder, file.name))
        for file in subject.files
        if file.sha256 is not None and file.sha256 == file.local_sha256
    }


def _is_model(name: str) -> bool:
    return name.lower().endswith(_ENDING)


def _compared(tree: HubTree, name: str, path: Path | None, *, listed: bool) -> UploadedFile:
    size = tree.size(name) if listed else None
    sha256 = tree.sha256(name) if listed else None
    local_size = None if path is None else FileSource(path).size
    read = path is not None and sha256 is not None and size in (None, local_size)
    return UploadedFile(
        name=name,
        is_listed=listed,
        size_bytes=size,
        sha256=sha256,
        local_bytes=local_size,
        local_sha256=file_sha256(path) if read and path is not None else None,
    )


def _files(folder: str) -> dict[str, Path]:
    """Return the files below a folder by the names that a repository gives them."""
    root = Path(LocalTree(folder).identity)
    try:
        return {
            path.relative_to(root).as_posix(): path
            for path in root.rglob("*")
            # git's and huggingface_hub's own, which is never uploaded.
            if path.is_file() and not path.relative_to(root).parts[0].startswith(".")
        }
    except OSError as error:
        raise SourceError(f"can't list {folder}: {error.strerror}") from error

"""Addresses that fsspec has a file system for."""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.errors import SourceError
from gguf_audit.sources.addresses import shown_url
from gguf_audit.sources.fsspec_files import FsspecTree, stays_here
from gguf_audit.sources.hub import is_offline
from gguf_audit.targets._local import ENDING
from gguf_audit.targets._located import Located, Source, few_enough

__all__ = ["in_a_file_system"]


def in_a_file_system(url: str) -> Iterator[Located]:
    """Yield the file, or the models in the folder, at an address; raises SourceError."""
    shown = shown_url(url)
    if is_offline() and not stays_here(url):
        raise SourceError(f"{shown} isn't asked for: --offline or HF_HUB_OFFLINE is set")
    # Nothing but a chain of wrappers needs these, and they would write to this disk.
    if "::" in url:
        raise SourceError(f"{shown}: chained protocols aren't taken, give the address itself")
    tree = FsspecTree(url)
    source = Source(id=shown, origin="fsspec")
    if tree.is_file:
        yield Located(shown, tree=tree, file=tree.name, source=source, traffic=tree.traffic)
        return
    names = [name for name in tree.found() if name.lower().endswith(ENDING)]
    if not names:
        raise SourceError(f"{shown} is no file, and there is no {ENDING} file below it")
    folder = shown.rstrip("/")
    for name in few_enough(names, shown):
        yield Located(
            f"{folder}/{name}",
            found=True,
            listed=folder,
            tree=tree,
            file=name,
            source=source,
            traffic=tree.traffic,
        )

"""Addresses of single files."""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.errors import SourceError
from gguf_audit.sources.hub import is_offline
from gguf_audit.sources.web import WebTree
from gguf_audit.targets._located import Located, Source

__all__ = ["on_the_web"]


def on_the_web(url: str) -> Iterator[Located]:
    """Yield the file at an http or https address; raises SourceError."""
    tree = WebTree(url)
    shown = tree.identity
    if is_offline():
        raise SourceError(f"{shown} isn't asked for: --offline or HF_HUB_OFFLINE is set")
    yield Located(
        shown,
        tree=tree,
        file=tree.name,
        source=Source(id=shown, origin="url"),
        traffic=tree.traffic,
    )

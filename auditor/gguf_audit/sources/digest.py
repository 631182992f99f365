"""The sha256 of a whole file: the one thing for which more than a header is read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gguf_audit.sources.local import FileSource

__all__ = ["file_sha256"]

_CHUNK_BYTES = 8 << 20


def file_sha256(path: Path) -> str:
    """Return the sha256 of a regular file in hex. Raises SourceError."""
    source, digest = FileSource(path), hashlib.sha256()
    for start in range(0, source.size, _CHUNK_BYTES):
        digest.update(source.read(start, min(_CHUNK_BYTES, source.size - start)))
    return digest.hexdigest()

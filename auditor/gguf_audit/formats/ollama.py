"""Manifests of Ollama's store: which blobs make up a model.

``manifests/<host>/<namespace>/<model>/<tag>`` is an OCI image manifest whose layers are
files in ``blobs`` (ollama server/manifest.go, server/images.go).
"""

from __future__ import annotations

import re

from msgspec import Struct

from gguf_audit.errors import MalformedError
from gguf_audit.formats._json import read_object
from gguf_audit.limits import LIMITS
from gguf_audit.sources import ByteSource
from gguf_audit.where import Where

__all__ = ["Layer", "read_manifest"]

_DIGEST = re.compile(r"sha256:(?P<hex>[0-9a-f]{64})")
_KIND = re.compile(r"application/vnd\.ollama\.image\.(?P<kind>[a-z]+)")


class Layer(Struct, frozen=True, kw_only=True):
    """One blob of a model: ``model``, ``projector``, ``adapter``, ``template``, ..."""

    kind: str
    sha256: str
    size_bytes: int

    @property
    def blob(self) -> str:
        """Name of its file in the store."""
        return f"blobs/sha256-{self.sha256}"


def read_manifest(source: ByteSource) -> tuple[Layer, ...]:
    """Return the layers of a model; an AuditError where that isn't what the file holds."""
    layers = read_object(source, limit_bytes=LIMITS.config_bytes).get("layers")
    if not isinstance(layers, list):
        raise _malformed(source, "it has no layers")
    found: list[Layer] = []
    for layer in layers:
        values = layer if isinstance(layer, dict) else {}
        digest = _DIGEST.fullmatch(str(values.get("digest")))
        kind = _KIND.fullmatch(str(values.get("mediaType")))
        size = values.get("size")
        if digest is None or kind is None or type(size) is not int or size < 0:
            raise _malformed(source, f"{str(layer)[:200]} is no layer")
        found.append(Layer(kind=kind["kind"], sha256=digest["hex"], size_bytes=size))
    return tuple(found)


def _malformed(source: ByteSource, reason: str) -> MalformedError:
    return MalformedError(
        f"{source.name} is no manifest of Ollama's: {reason}", where=Where(file=source.name)
    )

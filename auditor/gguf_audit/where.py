"""A place in a file: what an error or a finding points at."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Where"]


class Where(Struct, frozen=True, kw_only=True):
    """A place in a file: what an error or a finding points at."""

    #: Name of the file as the user gave it, or the shard's name inside a set.
    file: str | None = None
    #: Byte offset from the start of ``file``.
    offset: int | None = None
    #: Full metadata key, architecture prefix included.
    key: str | None = None
    tensor: str | None = None
    #: Index of the transformer block the place belongs to.
    layer: int | None = None
    #: Index of the quantization block inside ``tensor``.
    block: int | None = None

    def to_dict(self) -> dict[str, str | int | None]:
        """Return the place in the shape of the JSON report."""
        return {
            "file": self.file,
            "offset": self.offset,
            "key": self.key,
            "tensor": self.tensor,
            "layer": self.layer,
            "block": self.block,
        }

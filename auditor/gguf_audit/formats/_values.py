"""The values of a small tensor, read when somebody first asks for them."""

from __future__ import annotations

from struct import unpack
from typing import TYPE_CHECKING

from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent

if TYPE_CHECKING:
    from gguf_audit.gguf import FileFacts, Tensor
    from gguf_audit.sources import ByteSource

__all__ = ["read_values"]

F32_BYTES = 4


def read_values(source: ByteSource, file: FileFacts, tensor: Tensor) -> tuple[float, ...] | Absent:
    """Return a tensor's values; absent where its file lacks them or they are no F32.

    Raises AuditError where the file can't be read any more.
    """
    size = tensor.elements * F32_BYTES
    if tensor.type.name != "F32":
        return Absent(f"{tensor.name} is stored as {tensor.type.name}, only F32 is read")
    if size > LIMITS.factor_bytes:
        return Absent(
            f"{tensor.name} has {size:,} bytes, more than the {LIMITS.factor_bytes:,} that are read"
        )
    start = file.data_offset + tensor.offset
    if start + size > file.size_bytes:
        return Absent(f"{file.name} has no data for {tensor.name}")
    order = "<" if file.byte_order == "little" else ">"
    try:
        return unpack(f"{order}{tensor.elements}f", source.read(start, size))
    finally:
        source.close()

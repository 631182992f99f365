"""The values of a small tensor, read when somebody first asks for them."""

from __future__ import annotations

import math
from struct import iter_unpack, unpack
from typing import TYPE_CHECKING, Literal, NamedTuple

from gguf_audit.gguf import NonFinite
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent

if TYPE_CHECKING:
    from gguf_audit.gguf import FileFacts, Tensor
    from gguf_audit.sources import ByteSource

__all__ = ["read_negative", "read_non_finite", "read_values"]


class _Floats(NamedTuple):
    """How a type of floats is stored."""

    size_bytes: int
    #: Of the ``struct`` module; BF16 is the upper half of an F32.
    code: str
    #: The first byte of what isn't finite, its sign and ones in the exponent. In F16 that is
    #: the whole exponent; in the others its first seven bits, which huge numbers have too.
    tops: bytes


_HUGE = b"\x7f\xff"
_FLOATS = {
    "F64": _Floats(8, "d", _HUGE),
    "F32": _Floats(4, "f", _HUGE),
    "BF16": _Floats(2, "f", _HUGE),
    "F16": _Floats(2, "e", b"\x7c\x7d\x7e\x7f\xfc\xfd\xfe\xff"),
}


def read_values(source: ByteSource, file: FileFacts, tensor: Tensor) -> tuple[float, ...] | Absent:
    """Return a tensor's values; absent where its file lacks them or they are no F32.

    Raises AuditError where the file can't be read any more.
    """
    if tensor.type.name != "F32":
        return Absent(f"{tensor.name} is stored as {tensor.type.name}, only F32 is read")
    data = _data(source, file, tensor, limit_bytes=LIMITS.factor_bytes)
    if isinstance(data, Absent):
        return data
    return unpack(f"{_order(file)}{tensor.elements}f", data)


def read_non_finite(
    source: ByteSource, file: FileFacts, tensor: Tensor
) -> NonFinite | Absent | None:
    """Return what a tensor holds beside finite numbers, ``None`` for nothing.

    Absent where its file lacks the data or its type is none of floats. Raises AuditError
    where the file can't be read any more.
    """
    form = _FLOATS.get(tensor.type.name)
    if form is None:
        return Absent(f"{tensor.name} is stored as {tensor.type.name}, which is no type of floats")
    data = _data(source, file, tensor, limit_bytes=LIMITS.floats_bytes)
    if isinstance(data, Absent):
        return data
    order = _order(file)
    # One byte of each: thirty times as fast as making numbers of all.
    tops = data[0 if order == ">" else form.size_bytes - 1 :: form.size_bytes]
    if not any(top in tops for top in form.tops):
        return None
    if tensor.type.name == "BF16":
        data = _widened(data, order)
    found: tuple[int, float] | None = None
    count = lowest = highest = 0
    for index, (value,) in enumerate(iter_unpack(order + form.code, data)):
        if not math.isfinite(value):
            found = found or (index, value)
            count += 1
            lowest += value == -math.inf
            highest += value == math.inf
    if found is None:
        return None
    return NonFinite(index=found[0], value=found[1], count=count, lowest=lowest, highest=highest)


def read_negative(
    source: ByteSource, file: FileFacts, tensor: Tensor
) -> tuple[int, float] | Absent | None:
    """Return which of a tensor's values is the first below zero, ``None`` for none.

    Absent where its file lacks the data or they are no F32. Raises AuditError where the file
    can't be read any more.
    """
    if tensor.type.name != "F32":
        return Absent(f"{tensor.name} is stored as {tensor.type.name}, only F32 is read")
    data = _data(source, file, tensor, limit_bytes=LIMITS.floats_bytes)
    if isinstance(data, Absent):
        return data
    order = _order(file)
    # The sign is the highest bit: ASCII has none, and that is told without making numbers.
    if data[0 if order == ">" else 3 :: 4].isascii():
        return None
    values = enumerate(iter_unpack(f"{order}f", data))
    return next(((index, value) for index, (value,) in values if value < 0), None)


def _data(
    source: ByteSource, file: FileFacts, tensor: Tensor, *, limit_bytes: int
) -> bytes | Absent:
    size = tensor.size_bytes
    if size is None:
        return Absent(f"{tensor.name} has no size that is known")
    if size > limit_bytes:
        return Absent(
            f"{tensor.name} has {size:,} bytes, more than the {limit_bytes:,} that are read"
        )
    start = file.data_offset + tensor.offset
    if start + size > file.size_bytes:
        return Absent(f"{file.name} has no data for {tensor.name}")
    try:
        return source.read(start, size)
    finally:
        source.close()


def _order(file: FileFacts) -> Literal["<", ">"]:
    return "<" if file.byte_order == "little" else ">"


def _widened(data: bytes, order: Literal["<", ">"]) -> bytes:
    """Return BF16 as F32: its upper half, with zeros for the lower one."""
    upper = 0 if order == ">" else 2
    wide = bytearray(2 * len(data))
    wide[upper::4], wide[upper + 1 :: 4] = data[::2], data[1::2]
    return bytes(wide)

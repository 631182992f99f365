"""Where the data of tensors lies in a file: pure arithmetic on what the header says.

Exact integers throughout: llama.cpp's own ``ggml_nbytes`` multiplies modulo 2^64, and
a hostile shape makes it come out small.

    Q4_K, shape (512, 3): rows of 512 elements = 2 blocks of 256 = 2 * 144 bytes,
                          3 rows = 864 bytes
"""

from __future__ import annotations

from msgspec import Struct

from gguf_audit.gguf import FileFacts, Tensor, TensorType

__all__ = ["Extent", "data_end", "extents", "padded", "tensor_bytes"]


def padded(size: int, alignment: int) -> int:
    """Return ``size`` rounded up to a multiple of ``alignment``."""
    return -(-size // alignment) * alignment


def tensor_bytes(shape: tuple[int, ...], type_: TensorType) -> int | None:
    """Return the bytes of a tensor's data, padding not included.

    ``None`` where the type is unknown or a row isn't a whole number of blocks. No
    dimensions make a scalar. Formula of ``ggml_row_size`` and ``ggml_nbytes``
    (ggml/src/ggml.c), for contiguous tensors as files have them.
    """
    if type_.block_elements is None or type_.block_bytes is None:
        return None
    row_elements = shape[0] if shape else 1
    if row_elements % type_.block_elements:
        return None
    rows = 1
    for dimension in shape[1:]:
        rows *= dimension
    if not row_elements:
        return 0
    blocks = row_elements // type_.block_elements
    return rows * (type_.row_header_bytes + blocks * type_.block_bytes)


def data_end(file: FileFacts) -> int | None:
    """Return where a file ends at the latest, its last padding included.

    ``None`` where the size of what lies last isn't known.
    """
    known = [each.offset + each.size_bytes for each in file.tensors if each.size_bytes is not None]
    end = max(known, default=0)
    if any(each.size_bytes is None and each.offset >= end for each in file.tensors):
        return None
    return padded(file.data_offset + end, file.alignment)


class Extent(Struct, frozen=True, kw_only=True):
    """The bytes of one tensor, counted from the start of its file."""

    tensor: Tensor
    start: int
    #: First byte after the data; ``None`` where the header can't tell.
    end: int | None
    #: Bytes up to the next tensor that begins later, or to the end of the file: all
    #: that the data can have. Negative where it begins after the end of the file.
    gap_bytes: int


def extents(file: FileFacts) -> tuple[Extent, ...]:
    """Return where each tensor's data lies, in the order in which the data lies."""
    tensors = sorted(file.tensors, key=lambda tensor: tensor.offset)
    found: list[Extent] = []
    limit = file.size_bytes
    following: int | None = None
    for tensor in reversed(tensors):
        start = file.data_offset + tensor.offset
        if following is not None and following > start:
            limit = following
        end = None if tensor.size_bytes is None else start + tensor.size_bytes
        found.append(Extent(tensor=tensor, start=start, end=end, gap_bytes=limit - start))
        following = start
    found.reverse()
    return tuple(found)

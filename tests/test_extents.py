from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.extents import Extent, extents, padded, tensor_bytes
from gguf_audit.formats.ggml_types import TYPES_BY_NAME, tensor_type
from gguf_audit.testing import TensorSpec, make_gguf


@given(st.integers(0, 1 << 70), st.integers(1, 1 << 30))
def test_padding_is_the_next_multiple(size: int, alignment: int) -> None:
    found = padded(size, alignment)
    assert found % alignment == 0
    assert 0 <= found - size < alignment


def test_sizes_are_exact_beyond_64_bits() -> None:
    f32, q4_k = TYPES_BY_NAME["F32"], TYPES_BY_NAME["Q4_K"]
    assert tensor_bytes((1024, (1 << 52) + 1), f32) == 4 * 1024 * ((1 << 52) + 1)
    assert tensor_bytes((512, 3), q4_k) == 864
    assert tensor_bytes((), f32) == 4
    assert tensor_bytes((0, 1 << 62, 1 << 62), f32) == 0
    assert tensor_bytes((256, 0), q4_k) == 0
    assert tensor_bytes((0, 3), TYPES_BY_NAME["IQ2_KS"]) == 0


def test_no_size_without_a_type_or_with_a_broken_row() -> None:
    assert tensor_bytes((100,), TYPES_BY_NAME["Q4_K"]) is None
    assert tensor_bytes((32,), tensor_type(9999)) is None


def test_extents_follow_the_data_not_the_header() -> None:
    file = make_gguf(
        {},
        [
            TensorSpec("second", (8,), "F32", offset=64),
            TensorSpec("unknown", (8,), 9999, offset=96),
            TensorSpec("first", (8,), "F32", offset=0),
            TensorSpec("twin", (8,), "F32", offset=0),
            TensorSpec("behind", (8,), "F32", offset=1 << 40),
        ],
    ).files[0]
    by_name = {tensor.name: tensor for tensor in file.tensors}
    data, end = file.data_offset, file.size_bytes
    assert extents(file) == (
        Extent(tensor=by_name["first"], start=data, end=data + 32, gap_bytes=64),
        Extent(tensor=by_name["twin"], start=data, end=data + 32, gap_bytes=64),
        Extent(tensor=by_name["second"], start=data + 64, end=data + 96, gap_bytes=32),
        Extent(
            tensor=by_name["unknown"],
            start=data + 96,
            end=None,
            gap_bytes=(1 << 40) - 96,
        ),
        Extent(
            tensor=by_name["behind"],
            start=data + (1 << 40),
            end=data + (1 << 40) + 32,
            gap_bytes=end - data - (1 << 40),
        ),
    )


def test_a_file_without_tensors_has_none() -> None:
    assert extents(make_gguf({"a": 1}).files[0]) == ()

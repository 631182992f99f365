from __future__ import annotations

import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from gguf_audit.extents import tensor_bytes
from gguf_audit.formats.ggml_types import REMOVED, TYPES, TYPES_BY_NAME, tensor_type
from gguf_audit.gguf import TensorType

#: gguf-py learns of a type after ggml.h; these it may not know yet.
NEWER_THAN_GGUF_PY = {42}


def test_the_table_is_that_of_gguf_py() -> None:
    ours = {
        id_: (found.name, found.block_elements, found.block_bytes, found.row_header_bytes)
        for id_, found in TYPES.items()
        if found.needs is None
    }
    theirs = {
        int(found): (found.name, *GGML_QUANT_SIZES[found], 0) for found in GGMLQuantizationType
    }
    newer = {id_: ours.pop(id_) for id_ in NEWER_THAN_GGUF_PY - set(theirs)}
    assert newer in ({}, {42: ("Q2_0", 64, 18, 0)})
    assert ours == theirs


def test_ids_and_names_are_unique_and_removed_ones_not_among_them() -> None:
    assert len(TYPES_BY_NAME) == len(TYPES)
    assert not REMOVED.keys() & TYPES.keys()
    assert sorted(REMOVED) == [4, 5, 31, 32, 33, 36, 37, 38]


def test_a_removed_and_an_unknown_id_have_no_size() -> None:
    assert tensor_type(36) == TensorType(
        id=36, name="IQ4_NL_4_4", block_elements=None, block_bytes=None, removed=True
    )
    assert tensor_type(9999) == TensorType(
        id=9999, name="type 9999", block_elements=None, block_bytes=None
    )


@pytest.mark.parametrize(
    ("name", "shape", "size"),
    [
        # ik_llama.cpp, ggml_row_size: header + blocks, once a row.
        ("IQ2_KS", (256, 3), 3 * (2 + 70)),
        ("IQ4_KS", (512, 2), 2 * (4 + 2 * 136)),
        ("IQ4_KSS", (256,), 4 + 128),
        ("IQ1_S_R4", (64, 4), 4 * (2 + 2 * 6)),
        ("IQ2_K", (256, 2), 2 * 76),
        ("Q6_0", (32, 2), 2 * 26),
        ("IQ3_KT", (256, 1, 2), 2 * (4 + 100)),
    ],
)
def test_types_of_ik_llama_cpp_need_it_and_have_sizes(
    name: str, shape: tuple[int, ...], size: int
) -> None:
    found = TYPES_BY_NAME[name]
    assert found.needs == "ik_llama.cpp"
    assert tensor_bytes(shape, found) == size


def test_their_bits_per_weight_are_those_published() -> None:
    # The help text of ik_llama.cpp's quantizer (examples/quantize/quantize.cpp), which
    # leaves row headers out and rounds some.
    published = {
        "IQ1_BN": 1.62,
        "IQ1_KT": 1.75,
        "IQ2_BN": 2.0,
        "IQ2_KT": 2.125,
        "IQ2_KS": 2.1875,
        "IQ2_K": 2.375,
        "IQ2_KL": 2.69,
        "IQ3_KT": 3.125,
        "IQ3_KS": 3.19,
        "IQ3_K": 3.44,
        "IQ4_KT": 4.0,
        "IQ4_KSS": 4.0,
        "IQ4_KS": 4.25,
        "IQ4_K": 4.5,
        "IQ5_KS": 5.25,
        "IQ5_K": 5.5,
        "Q6_0": 6.5,
        "IQ6_K": 6.6,
    }
    ours: dict[str, float] = {}
    for name in published:
        found = TYPES_BY_NAME[name]
        assert found.block_bytes is not None
        assert found.block_elements is not None
        ours[name] = found.block_bytes * 8 / found.block_elements
    assert ours == pytest.approx(published, abs=0.03)

"""The writer that every other test stands on: byte for byte, and as gguf-py writes."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import pytest

from gguf_audit.errors import SourceError
from gguf_audit.formats.ggml_types import TYPES_BY_NAME
from gguf_audit.gguf import Array, ValueType
from gguf_audit.testing import (
    FieldValue,
    HoleSource,
    TensorSpec,
    build_gguf,
    make_gguf,
    split_gguf,
    write_gguf,
    write_split_gguf,
)


def test_a_file_is_written_to_the_byte() -> None:
    content = build_gguf(
        {"k": 7, "a": [True]}, [TensorSpec("t", (2, 3), "F16", data=bytes(range(12)))], version=2
    )
    header = (
        b"GGUF"
        + struct.pack("<IQQ", 2, 1, 2)
        + struct.pack("<Q", 1)
        + b"k"
        + struct.pack("<II", 4, 7)
        + struct.pack("<Q", 1)
        + b"a"
        + struct.pack("<IIQB", 9, 7, 1, 1)
        + struct.pack("<Q", 1)
        + b"t"
        + struct.pack("<IQQIQ", 2, 2, 3, 1, 0)
    )
    start = -(-len(header) // 32) * 32
    assert content == header.ljust(start, b"\0") + bytes(range(12)).ljust(32, b"\0")


def test_big_endian_swaps_every_number_but_not_the_magic() -> None:
    assert build_gguf({"k": (ValueType.UINT16, 258)}, byte_order="big") == (
        b"GGUF" + struct.pack(">IQQQ", 3, 0, 1, 1) + b"k" + struct.pack(">IH", 2, 258)
    )


def test_gguf_py_writes_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("a.int", 7)
    writer.add_float32("a.float", 0.5)
    writer.add_bool("a.bool", True)
    writer.add_string("a.text", "é")
    writer.add_array("a.texts", ["x", "y"])
    writer.add_array("a.ints", [1, -2])
    writer.add_array("a.bools", [True, False])
    writer.add_array("a.floats", [0.5, 1.5])
    writer.add_uint64("a.long", 5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    ours = build_gguf(
        {
            "general.architecture": "llama",
            "a.int": 7,
            "a.float": 0.5,
            "a.bool": True,
            "a.text": "é",
            "a.texts": ["x", "y"],
            "a.ints": [1, -2],
            "a.bools": [True, False],
            "a.floats": [0.5, 1.5],
            "a.long": (ValueType.UINT64, 5),
        }
    )
    assert ours == path.read_bytes()


def item_type(value: FieldValue) -> ValueType:
    found = make_gguf({"k": value}).fields["k"].value
    assert isinstance(found, Array)
    return found.item_type


def test_items_have_one_type() -> None:
    assert item_type([1, 1 << 31]) is ValueType.INT64
    assert item_type([1, 0.5]) is ValueType.FLOAT32
    assert item_type([[1], ["a"]]) is ValueType.ARRAY
    assert item_type((ValueType.UINT8, [1, 2])) is ValueType.UINT8
    assert item_type((1, 2, 3)) is ValueType.INT32
    mixed: tuple[FieldValue, ...] = (["a", 1], [True, 1], [[1], 2])
    for wrong in mixed:
        with pytest.raises(TypeError, match="items of one type"):
            build_gguf({"k": wrong})
    with pytest.raises(ValueError, match="empty array needs the type"):
        build_gguf({"k": []})
    with pytest.raises(TypeError, match="is no string"):
        build_gguf({"k": (ValueType.STRING, [1])})
    with pytest.raises(TypeError, match="is no number"):
        build_gguf({"k": (ValueType.UINT8, "a")})


def test_types_of_tensors_go_by_name_id_or_value() -> None:
    found = make_gguf(
        {}, [("a", (32,), "q8_0"), ("b", (32,), 8), ("c", (32,), TYPES_BY_NAME["Q8_0"])]
    )
    assert {tensor.type.name for tensor in found.tensors.values()} == {"Q8_0"}
    with pytest.raises(ValueError, match="no tensor type is called 'Q9'"):
        build_gguf({}, [("a", (32,), "Q9")])


def test_alignment_is_stated_or_taken_from_the_fields() -> None:
    tensors = [("t", (1,), "F32"), ("u", (1,), "F32")]
    stated = make_gguf({"general.alignment": 64}, tensors).files[0]
    added = make_gguf({}, tensors, alignment=64).files[0]
    assert stated == added
    assert [tensor.offset for tensor in added.tensors] == [0, 64]
    contradicted = make_gguf({"general.alignment": 64}, tensors, alignment=16).files[0]
    assert [tensor.offset for tensor in contradicted.tensors] == [0, 16]


def test_an_offset_that_is_given_moves_no_other_tensor() -> None:
    found = make_gguf(
        {}, [TensorSpec("a", (8,), offset=1 << 40), ("b", (8,), "F32"), ("c", (8,), "F32")]
    )
    assert [tensor.offset for tensor in found.tensors.values()] == [1 << 40, 32, 64]
    assert found.files[0].size_bytes == found.files[0].data_offset + 96


def test_a_written_file_is_the_built_one_but_with_a_hole(tmp_path: Path) -> None:
    fields: dict[str, FieldValue] = {"a": 1}
    tensors = [TensorSpec("t", (64,)), TensorSpec("u", (2,), "I8", data=b"\1\2")]
    path = write_gguf(tmp_path / "x.gguf", fields, tensors)
    assert path.read_bytes() == build_gguf(fields, tensors)
    big = write_gguf(tmp_path / "big.gguf", fields, [("t", (1 << 20, 1 << 15), "Q4_0")])
    assert big.stat().st_size > 18 << 30
    assert big.stat().st_blocks * 512 < 1 << 20


def test_a_made_model_is_what_reading_the_built_file_gives() -> None:
    found = make_gguf({"a": ["x"]}, [("t", (1 << 20, 1 << 15), "F32")], name="m.gguf")
    file = found.files[0]
    assert (found.name, file.name) == ("m.gguf", "m.gguf")
    assert file.size_bytes == file.data_offset + (1 << 37)
    assert found.fields["a"].value == file.fields[0].value


def test_a_hole_is_zeros_up_to_its_end() -> None:
    source = HoleSource("h", b"ab", 10)
    assert (source.read(0, 2), source.read(1, 3), source.read(5, 5)) == (b"ab", b"b\0\0", bytes(5))
    with pytest.raises(SourceError):
        source.read(5, 6)


def test_a_set_on_disk_is_the_one_in_memory(tmp_path: Path) -> None:
    fields: dict[str, FieldValue] = {"a": 1}
    tensors = [(f"t{index}", (8,), "F32") for index in range(4)]
    files = split_gguf(fields, tensors, shards=3, stem="m")
    paths = write_split_gguf(tmp_path, fields, tensors, shards=3, stem="m")
    assert {path.name: path.read_bytes() for path in paths} == files
    assert list(files) == [f"m-0000{number}-of-00003.gguf" for number in (1, 2, 3)]

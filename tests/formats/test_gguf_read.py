"""What a sound file gives, compared with gguf-py's own reader."""

from __future__ import annotations

import hashlib
import math
import tempfile
from pathlib import Path
from typing import Literal

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gguf_audit.extents import padded
from gguf_audit.formats.ggml_types import TYPES, TYPES_BY_NAME
from gguf_audit.formats.gguf import open_gguf, read_gguf
from gguf_audit.gguf import Array, Field, FileFacts, Gguf, Scalar, Tensor, ValueType
from gguf_audit.sources import MemorySource
from gguf_audit.testing import FieldValue, TensorSpec, Typed, build_gguf, make_gguf, write_gguf

ByteOrder = Literal["little", "big"]

RANGES = {
    ValueType.UINT8: (0, 2**8 - 1),
    ValueType.INT8: (-(2**7), 2**7 - 1),
    ValueType.UINT16: (0, 2**16 - 1),
    ValueType.INT16: (-(2**15), 2**15 - 1),
    ValueType.UINT32: (0, 2**32 - 1),
    ValueType.INT32: (-(2**31), 2**31 - 1),
    ValueType.UINT64: (0, 2**64 - 1),
    ValueType.INT64: (-(2**63), 2**63 - 1),
}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def scalars_of(type_: ValueType) -> st.SearchStrategy[Scalar]:
    match type_:
        case ValueType.STRING:
            return TEXT
        case ValueType.BOOL:
            return st.booleans()
        case ValueType.FLOAT32:
            return st.floats(width=32)
        case ValueType.FLOAT64:
            return st.floats()
        case _:
            return st.integers(*RANGES[type_])


LEAVES = st.sampled_from([type_ for type_ in ValueType if type_ is not ValueType.ARRAY])
SCALARS: st.SearchStrategy[Typed] = LEAVES.flatmap(
    lambda type_: st.tuples(st.just(type_), scalars_of(type_))
)
ARRAYS: st.SearchStrategy[Typed] = LEAVES.flatmap(
    lambda type_: st.tuples(st.just(type_), st.lists(scalars_of(type_), max_size=5))
)
KEYS = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=1, max_size=20).filter(
    lambda key: key != "general.alignment"
)
FIELDS = st.dictionaries(KEYS, SCALARS | ARRAYS, max_size=6)
TYPE_NAMES = st.sampled_from(sorted(name for name in TYPES_BY_NAME if TYPES_BY_NAME[name].id < 42))


@st.composite
def shapes(draw: st.DrawFn, type_name: str) -> tuple[int, ...]:
    elements = TYPES_BY_NAME[type_name].block_elements
    assert elements is not None
    rest = draw(st.lists(st.integers(1, 3), max_size=3))
    return (elements * draw(st.integers(1, 3)), *rest)


TENSORS = st.lists(
    TYPE_NAMES.flatmap(lambda name: st.tuples(TEXT.filter(bool), shapes(name), st.just(name))),
    max_size=4,
    unique_by=lambda tensor: tensor[0],
)


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return left == right and type(left) is type(right)


def assert_value(field: Field, typed: Typed) -> None:
    type_, value = typed
    if isinstance(value, list):
        assert isinstance(field.value, Array)
        assert (field.type, field.value.item_type) == (ValueType.ARRAY, type_)
        assert field.value.count == len(field.value) == len(value)
        items = field.value.items()
        assert len(items) == len(value)
        assert all(same(found, wanted) for found, wanted in zip(items, value, strict=True))
    else:
        assert field.type is type_
        assert same(field.value, value)


@given(
    fields=FIELDS,
    tensors=TENSORS,
    version=st.sampled_from([2, 3]),
    byte_order=st.sampled_from(["little", "big"]),
    alignment=st.sampled_from([8, 32, 64, 4096]),
)
def test_what_was_written_is_read_back_whole(
    fields: dict[str, Typed],
    tensors: list[tuple[str, tuple[int, ...], str]],
    version: int,
    byte_order: ByteOrder,
    alignment: int,
) -> None:
    content = build_gguf(
        dict[str, FieldValue](fields),
        tensors,
        version=version,
        byte_order=byte_order,
        alignment=alignment,
    )
    found = read_gguf(MemorySource("x.gguf", content))
    file = found.files[0]
    values = dict(found.fields)
    stated = values.pop("general.alignment", None)
    assert (stated.value if stated else 32) == alignment
    assert list(values) == list(fields)
    for key, typed in fields.items():
        assert_value(values[key], typed)
    assert [(t.name, t.shape, t.type.name) for t in file.tensors] == tensors
    assert file == FileFacts(
        name="x.gguf",
        size_bytes=len(content),
        header_bytes=file.header_bytes,
        header_sha256=hashlib.sha256(content[: file.header_bytes]).hexdigest(),
        data_offset=padded(file.header_bytes, alignment),
        alignment=alignment,
        version=version,
        byte_order=byte_order,
        fields=file.fields,
        tensors=file.tensors,
    )
    # The last tensor, padded, ends the file: nothing was misread on the way.
    if tensors:
        last = file.tensors[-1]
        assert last.size_bytes is not None
        end = file.data_offset + padded(last.offset + last.size_bytes, alignment)
        assert end == len(content)
    else:
        assert file.header_bytes == len(content)


def oracle_value(field: gguf.ReaderField) -> object:
    # gguf-py can't tell the type of an empty array's items.
    return field.contents() if field.data else []


# gguf-py overflows by itself on numbers that its numpy types wrap.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(fields=FIELDS, tensors=TENSORS, byte_order=st.sampled_from(["little", "big"]))
def test_gguf_py_reads_the_same(
    fields: dict[str, Typed],
    tensors: list[tuple[str, tuple[int, ...], str]],
    byte_order: ByteOrder,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        write = build_gguf(dict[str, FieldValue](fields), tensors, byte_order=byte_order)
        path.write_bytes(write)
        found, oracle = open_gguf(path), gguf.GGUFReader(path)
        assert_agree(found, oracle)


def assert_agree(found: Gguf, oracle: gguf.GGUFReader) -> None:
    theirs = {key: value for key, value in oracle.fields.items() if not key.startswith("GGUF.")}
    assert list(found.fields) == list(theirs)
    for key, field in found.fields.items():
        ours = list(field.value.items()) if isinstance(field.value, Array) else field.value
        wanted = oracle_value(theirs[key])
        assert repr(ours) == repr(wanted), key
        assert field.offset == theirs[key].offset
    file = found.files[0]
    assert (file.data_offset, file.alignment) == (oracle.data_offset, oracle.alignment)
    assert [
        (t.name, list(t.shape), t.type.id, t.size_bytes, file.data_offset + t.offset, t.info_offset)
        for t in file.tensors
    ] == [
        (
            t.name,
            [int(dimension) for dimension in t.shape],
            int(t.tensor_type),
            int(t.n_bytes),
            int(t.data_offset),
            int(t.field.offset),
        )
        for t in oracle.tensors
    ]


def test_every_kind_of_value_comes_out_typed() -> None:
    found = make_gguf(
        {
            "general.architecture": "llama",
            "a.int": 7,
            "a.negative": -7,
            "a.big": 1 << 40,
            "a.float": 0.5,
            "a.bool": True,
            "a.bytes": b"caf\xe9",
            "a.strings": ["one", b"\xff", ""],
            "a.bools": [True, False],
            "a.u64": (ValueType.UINT64, [1, 1 << 63]),
            "a.none": (ValueType.FLOAT64, []),
        }
    )
    values = {
        key: (
            field.type,
            field.value.items() if isinstance(field.value, Array) else field.value,
        )
        for key, field in found.fields.items()
    }
    assert values == {
        "general.architecture": (ValueType.STRING, "llama"),
        "a.int": (ValueType.UINT32, 7),
        "a.negative": (ValueType.INT32, -7),
        "a.big": (ValueType.UINT64, 1 << 40),
        "a.float": (ValueType.FLOAT32, 0.5),
        "a.bool": (ValueType.BOOL, True),
        "a.bytes": (ValueType.STRING, "caf\udce9"),
        "a.strings": (ValueType.ARRAY, ("one", "\udcff", "")),
        "a.bools": (ValueType.ARRAY, (True, False)),
        "a.u64": (ValueType.ARRAY, (1, 1 << 63)),
        "a.none": (ValueType.ARRAY, ()),
    }
    assert found.architecture == "llama"
    assert found.integer("a.big") == 1 << 40
    assert found.integer("a.bool") is None


def test_a_field_and_a_tensor_say_where_they_are() -> None:
    content = build_gguf({"a": 1, "b": [5, 6]}, [("t", (256, 3), "Q4_K"), ("u", (), "F32")])
    found = read_gguf(MemorySource("x", content))
    array = found.array("b")
    assert array is not None
    assert content[array.offset : array.offset + array.size_bytes] == bytes(
        [5, 0, 0, 0, 6, 0, 0, 0]
    )
    assert [(key, field.offset) for key, field in found.fields.items()] == [("a", 24), ("b", 41)]
    assert content[24:33] == b"\1" + bytes(7) + b"a"
    t, u = found.tensors.values()
    assert t == Tensor(
        name="t",
        shape=(256, 3),
        type=TYPES[12],
        info_offset=array.offset + 8,
        offset=0,
        size_bytes=432,
    )
    assert (u.shape, u.elements, u.size_bytes, u.offset) == ((), 1, 4, 448)


def test_items_are_read_once(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "x.gguf", {"a": ["x", "y"]})
    array = open_gguf(path).array("a")
    assert array is not None
    items = array.items()
    path.unlink()
    assert array.items() is items


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_nested_arrays_are_kept_and_come_flat(byte_order: ByteOrder) -> None:
    content = build_gguf(
        {"n": [[["a"], ["b", "c"]], [["d"]]], "m": [[1, 2], [3]], "after": 5},
        byte_order=byte_order,
    )
    found = read_gguf(MemorySource("x", content))
    outer, inner = found.array("n"), found.array("m")
    assert outer is not None
    assert inner is not None
    assert (outer.item_type, outer.count, outer.items()) == (
        ValueType.ARRAY,
        2,
        ("a", "b", "c", "d"),
    )
    assert (inner.item_type, inner.count, inner.items()) == (ValueType.ARRAY, 2, (1, 2, 3))
    assert found.integer("after") == 5


def test_strings_across_windows_are_read_whole(tmp_path: Path) -> None:
    # Longer than any window, around one, and many short ones behind.
    texts = ["x" * 700_000, "é" * 131_071, *(f"token {index}" for index in range(60_000)), ""]
    content = build_gguf({"a": list[str](texts), "z": 9})
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    found = open_gguf(path)
    array = found.array("a")
    assert array is not None
    assert array.items() == tuple(texts)
    assert found.integer("z") == 9
    assert found.files[0].header_sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("window", range(1, 120))
def test_a_window_may_end_anywhere(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fields: dict[str, FieldValue] = {
        "a": ["one", "", b"\xff\xfe", "fourteen bytes", "é", "x" * 50],
        "b": [1, 2, 3],
        "c": [[["x"], ["yy"]]],
        "d": "text",
        "e": True,
    }
    content = build_gguf(fields, [("t", (4,), "F32")], data="none")
    wanted = read_gguf(MemorySource("x", content))
    monkeypatch.setattr("gguf_audit.formats._cursor.WINDOW_BYTES", window)
    found = read_gguf(MemorySource("x", content))
    assert found == wanted
    assert found.files[0].header_sha256 == hashlib.sha256(content).hexdigest()
    items = [array.items() for key in "abc" if (array := found.array(key)) is not None]
    assert items == [
        ("one", "", "\udcff\udcfe", "fourteen bytes", "é", "x" * 50),
        (1, 2, 3),
        ("x", "yy"),
    ]


def test_numbers_across_chunks_are_read_whole() -> None:
    numbers = list(range(-70_000, 70_000))
    found = make_gguf({"a": (ValueType.INT64, list[int](numbers))})
    array = found.array("a")
    assert array is not None
    assert array.items() == tuple(numbers)


def test_alignment_counts_wherever_it_stands() -> None:
    tensors = [("t", (8,), "F32"), ("u", (8,), "F32")]
    for fields in (
        {"general.alignment": 64, "z": 1},
        {"z": 1, "general.alignment": 64},
    ):
        file = make_gguf(dict[str, FieldValue](fields), tensors).files[0]
        assert (file.alignment, file.data_offset % 64) == (64, 0)
        assert [tensor.offset for tensor in file.tensors] == [0, 64]


def test_duplicates_are_kept_and_the_first_counts() -> None:
    content = build_gguf(
        [("a", 1), ("a", 2), ("b", 3)],
        [TensorSpec("t", (8,)), TensorSpec("t", (16,))],
    )
    found = read_gguf(MemorySource("x", content))
    file = found.files[0]
    assert [(field.key, field.value) for field in file.fields] == [("a", 1), ("a", 2), ("b", 3)]
    assert [(tensor.name, tensor.shape) for tensor in file.tensors] == [("t", (8,)), ("t", (16,))]
    assert found.integer("a") == 1
    assert found.tensors["t"].shape == (8,)


def test_what_rules_judge_is_read() -> None:
    content = build_gguf(
        {"a\0b": "x\0y", "bool": (ValueType.UINT8, 2)},
        [
            TensorSpec("unknown", (32,), 9999),
            TensorSpec("removed", (32,), 36),
            TensorSpec("row", (100,), "Q4_K"),
            TensorSpec("outside", (1 << 40, 1 << 20), "F32", data=b"", offset=1 << 50),
            TensorSpec("empty", (0, 1 << 62, 1 << 62), "F32"),
            TensorSpec("", (1,), "F32", offset=(1 << 64) - 1),
        ],
    ).replace(b"bool\0\0\0\0", b"bool\7\0\0\0")
    found = read_gguf(MemorySource("x", content))
    assert found.string("a\0b") == "x\0y"
    odd = found.fields["bool"]
    assert (odd.type, odd.value, odd.odd_bool) == (ValueType.BOOL, True, 2)
    assert [(t.name, t.type.name, t.offset, t.size_bytes) for t in found.tensors.values()] == [
        ("unknown", "type 9999", 0, None),
        ("removed", "IQ4_NL_4_4", 0, None),
        ("row", "Q4_K", 0, None),
        ("outside", "F32", 1 << 50, 1 << 62),
        ("empty", "F32", 0, 0),
        ("", "F32", (1 << 64) - 1, 4),
    ]


@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize("version", [2, 3])
def test_the_least_file_is_24_bytes(version: int, byte_order: ByteOrder) -> None:
    content = build_gguf(version=version, byte_order=byte_order)
    assert len(content) == 24
    found = read_gguf(MemorySource("x", content))
    assert found.files == (
        FileFacts(
            name="x",
            size_bytes=24,
            header_bytes=24,
            header_sha256=hashlib.sha256(content).hexdigest(),
            data_offset=32,
            alignment=32,
            version=version,
            byte_order=byte_order,
            fields=(),
            tensors=(),
        ),
    )
    assert (dict(found.fields), dict(found.tensors)) == ({}, {})


def test_a_header_alone_is_enough() -> None:
    tensors = [("t", (4096, 4096), "F16")]
    whole = build_gguf({"a": 1}, tensors, data="none")
    found = read_gguf(MemorySource("x", whole))
    assert found.files[0].header_bytes == len(whole)
    assert found.tensors["t"].size_bytes == 2 << 24

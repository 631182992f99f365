"""Headers are read as the safetensors library reads them, and nothing more is read."""

from __future__ import annotations

import importlib
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gguf_audit.checkpoint import StoredTensor
from gguf_audit.errors import AuditError, LimitError, MalformedError, ReferenceUnavailableError
from gguf_audit.formats.safetensors import INDEX, read_header, read_tensors
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.sources import MemorySource, MemoryTree

# Its functions have no types.
LIBRARY: Any = importlib.import_module("safetensors")
WRITER: Any = importlib.import_module("safetensors.numpy")

_DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "float16",
    "int32",
    "uint32",
    "float32",
    "float64",
    "int64",
]
_SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


def _file(header: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def _tensor(shape: list[object], offsets: list[object], dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def _error(content: bytes) -> AuditError:
    with pytest.raises(AuditError) as caught:
        read_header(MemorySource("m.safetensors", content))
    return caught.value


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None
)
@given(
    shapes=st.dictionaries(
        st.text(min_size=1), st.tuples(st.sampled_from(_DTYPES), _SHAPES), max_size=6
    ),
    # Not empty: the library writes no JSON for neither tensors nor metadata.
    metadata=st.none() | st.dictionaries(st.text(), st.text(), min_size=1, max_size=2),
)
def test_equals_the_library(
    tmp_path: Path,
    shapes: dict[str, tuple[str, tuple[int, ...]]],
    metadata: dict[str, str] | None,
) -> None:
    arrays = {name: np.zeros(shape, dtype) for name, (dtype, shape) in shapes.items()}
    path = tmp_path / "m.safetensors"
    WRITER.save_file(arrays, path, metadata)
    ours = read_header(MemorySource("m", path.read_bytes()))
    theirs: dict[str, StoredTensor] = {}
    with LIBRARY.safe_open(path, framework="numpy") as opened:
        for name in opened.keys():  # noqa: SIM118 - no mapping
            part = opened.get_slice(name)
            theirs[name] = StoredTensor(dtype=part.get_dtype(), shape=tuple(part.get_shape()))
    assert ours == theirs


@settings(deadline=None)  # a loaded machine is no fault
@given(
    tensors=st.lists(
        st.tuples(
            st.sampled_from(["F32", "F16", "U8", "F4", "X"]),
            st.lists(st.integers(-1, 5), max_size=3),
            st.integers(-4, 60),
            st.integers(-4, 60),
        ),
        max_size=3,
    ),
    size=st.integers(0, 80),
)
def test_refuses_whatever_the_library_refuses(
    tensors: list[tuple[str, list[int], int, int]], size: int
) -> None:
    header = {
        f"t{index}": {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
        for index, (dtype, shape, begin, end) in enumerate(tensors)
    }
    content = _file(header, bytes(size))
    try:
        ours = set(read_header(MemorySource("m", content)))
    except MalformedError:
        ours = None
    try:
        theirs = {name for name, _ in LIBRARY.deserialize(content)}
    except LIBRARY.SafetensorError:
        theirs = None
    assert ours == theirs


def test_passes_over_what_the_library_passes_over() -> None:
    content = _file({"w": _tensor([1], [0, 4]) | {"x": {"dtype": 1}}}, bytes(4))
    assert list(WRITER.load(content)) == ["w"]
    found = read_header(MemorySource("m.safetensors", content))
    assert found == {"w": StoredTensor(dtype="F32", shape=(1,))}


def test_reads_the_header_alone() -> None:
    content = _file({"w": _tensor([2, 3], [0, 24]), "v": _tensor([0], [24, 24], "BF16")}, bytes(24))
    reads: list[tuple[int, int]] = []

    class Watched(MemorySource):
        def read(self, start: int, length: int) -> bytes:
            reads.append((start, length))
            return super().read(start, length)

    assert read_header(Watched("m", content)) == {
        "w": StoredTensor(dtype="F32", shape=(2, 3)),
        "v": StoredTensor(dtype="BF16", shape=(0,)),
    }
    assert reads == [(0, 8), (8, len(content) - 32)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes, expected at least the 8 of the header length"),
        (b"1234567", "7 bytes, expected at least the 8 of the header length"),
        (
            _file({}, length=2**64 - 1),
            f"header length is {2**64 - 1}, only 2 bytes are left in the file",
        ),
        (_file(b" {}"), "header doesn't begin with {"),
        (_file({"__metadata__": {"a": 1}}), "__metadata__ is no object of strings"),
        (_file({"__metadata__": []}), "__metadata__ is no object of strings"),
        (_file({"w": 1}), "tensor 'w': expected dtype, shape and data_offsets"),
        (
            _file({"w": {"dtype": "F32", "shape": [], "x": [0, 4]}}),
            "tensor 'w': expected dtype, shape and data_offsets",
        ),
        (
            _file({"w": _tensor([], [0, 4]) | {"x": math.nan}}, bytes(4)),
            "has the number 'NaN', which is not finite",
        ),
        (
            _file({"w": _tensor([], [0, 4], "F3")}),
            "tensor 'w': dtype isn't one that safetensors knows",
        ),
        (
            _file({"w": _tensor([], [0, 4], [])}),
            "tensor 'w': dtype isn't one that safetensors knows",
        ),
        (_file({"w": _tensor([True], [0, 4])}), "tensor 'w': shape is no list of counts"),
        (_file({"w": _tensor([-1, -1], [0, 4])}), "tensor 'w': shape is no list of counts"),
        (_file({"w": _tensor([1.0], [0, 4])}), "tensor 'w': shape is no list of counts"),
        (
            _file({"w": _tensor([1], [0, 4, 8])}),
            "tensor 'w': data_offsets are no pair of begin and end",
        ),
        (
            _file({"w": _tensor([1], [4, 0])}),
            "tensor 'w': data_offsets are no pair of begin and end",
        ),
        (
            _file({"w": _tensor([2**62 + 1, 4], [0, 16])}, bytes(16)),
            "tensor 'w': data_offsets give 16 bytes, dtype and shape need more than any file's",
        ),
        (
            _file({"w": _tensor([3], [0, 16])}, bytes(16)),
            "tensor 'w': data_offsets give 16 bytes, dtype and shape need 12",
        ),
        (
            _file({"a": _tensor([1], [0, 4]), "b": _tensor([1], [8, 12])}, bytes(12)),
            "tensor 'b': data begins at 8, expected 4: no gap, no overlap",
        ),
        (
            _file({"a": _tensor([2], [0, 8]), "b": _tensor([1], [4, 8])}, bytes(8)),
            "tensor 'b': data begins at 4, expected 8: no gap, no overlap",
        ),
        (
            _file({"a": _tensor([1], [0, 4])}, bytes(5)),
            "tensors take 4 bytes, the file has 5 after its header",
        ),
    ],
)
def test_says_what_is_wrong(content: bytes, message: str) -> None:
    error = _error(content)
    assert isinstance(error, MalformedError)
    separator = " " if message.startswith("tensor '") else ": "
    assert error.message.replace(":", "", 1).split() == f"m.safetensors {message}".split(), (
        separator
    )


def test_bounds_what_the_library_takes() -> None:
    many = [1] * 65
    assert isinstance(_error(_file({"w": _tensor([*many], [0, 4])}, bytes(4))), LimitError)
    twice = b'{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    assert "'w' twice" in _error(_file(twice, b"x")).message
    assert isinstance(_error(_file(b'{"a":' * 100_000)), LimitError)


def test_bounds_the_header() -> None:
    class Huge(MemorySource):
        @property
        def size(self) -> int:
            return 1 << 40

    with pytest.raises(LimitError, match="has a header of 100000001 bytes"):
        read_header(Huge("m", struct.pack("<Q", 100_000_001)))


_ONE = _file({"a": _tensor([1], [0, 4])}, bytes(4))
_TWO = _file({"b": _tensor([2], [0, 8])}, bytes(8))
_A = StoredTensor(dtype="F32", shape=(1,))
_B = StoredTensor(dtype="F32", shape=(2,))


def _tree(index: object = None, **files: bytes) -> MemoryTree:
    contents = {
        name.replace("__", "-") + ".safetensors": content for name, content in files.items()
    }
    if index is not None:
        contents[INDEX] = json.dumps(index).encode()
    return MemoryTree(contents)


def test_reads_all_shards_of_an_index() -> None:
    index = {"weight_map": {"a": "x-1.safetensors", "b": "x-2.safetensors"}}
    assert read_tensors(_tree(index, x__1=_ONE, x__2=_TWO, model=b"")) == {"a": _A, "b": _B}


def test_reads_model_files_without_an_index() -> None:
    assert read_tensors(_tree(model__1=_ONE, model__2=_TWO, adapter=b"")) == {"a": _A, "b": _B}


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (MemoryTree({"config.json": b"{}"}), "no model.safetensors in the folder"),
        (
            MemoryTree({"pytorch_model.bin": b"\x80"}),
            "only pickled weights (pytorch_model.bin), which are never opened",
        ),
    ],
)
def test_says_why_there_are_no_tensors(tree: MemoryTree, reason: str) -> None:
    assert read_tensors(tree) == Absent(reason)


def test_names_shards_that_are_missing() -> None:
    index = {
        "weight_map": {f"t{i}": f"x-{i}.safetensors" for i in range(8)} | {"a": "y.safetensors"}
    }
    with pytest.raises(ReferenceUnavailableError) as caught:
        read_tensors(_tree(index, y=_ONE))
    assert caught.value.message == (
        "x-0.safetensors, x-1.safetensors, x-2.safetensors, x-3.safetensors, x-4.safetensors"
        " (and 3 more) not there, model.safetensors.index.json names 9 shards"
    )
    assert caught.value.where.file == "x-0.safetensors"


@pytest.mark.parametrize("indexed", [True, False])
def test_more_shards_than_are_read(indexed: bool) -> None:
    names = [f"model-{number}.safetensors" for number in range(LIMITS.shards + 1)]
    index = json.dumps({"weight_map": {name: name for name in names}}).encode()
    files = {INDEX: index} if indexed else {}
    with pytest.raises(LimitError, match="there are 10001 shards, more than 10000 are not read"):
        read_tensors(MemoryTree({**files, **dict.fromkeys(names, b"")}))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": []}, "weight_map is no object"),
        ({}, "weight_map is no object"),
        ({"weight_map": {"a": 1}}, "weight_map names no file"),
        ({"weight_map": {"a": "/etc/passwd"}}, "is refused: it is absolute"),
        ({"weight_map": {"a": "../x.safetensors"}}, "is refused: it leaves its folder"),
        ({"weight_map": {"a": "http://host/x"}}, "is refused: it names a drive or a URL"),
        ({"weight_map": {"a": "x.safetensors", "b": "x.safetensors"}}, "disagree on b"),
        ({"weight_map": {"c": "x.safetensors"}}, "disagree on a, c"),
    ],
)
def test_refuses_an_index_that_is_wrong(index: object, message: str) -> None:
    with pytest.raises(MalformedError) as caught:
        read_tensors(_tree(index, x=_ONE))
    assert message in caught.value.message


def test_refuses_a_tensor_in_two_shards() -> None:
    with pytest.raises(MalformedError, match="another shard has this tensor too"):
        read_tensors(_tree(model__1=_ONE, model__2=_ONE))

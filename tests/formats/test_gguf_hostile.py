"""Bytes that lie: an AuditError with its place, soon, and nothing else."""

from __future__ import annotations

import contextlib
import struct
import time
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.errors import (
    AuditError,
    LimitError,
    MalformedError,
    SourceError,
    UnsupportedError,
)
from gguf_audit.formats.gguf import open_gguf, read_gguf
from gguf_audit.gguf import Array, ValueType
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources import MemorySource
from gguf_audit.testing import FieldValue, build_gguf
from gguf_audit.where import Where

ByteOrder = Literal["little", "big"]

SMALL = build_gguf(
    {
        "general.architecture": "llama",
        "a.number": 7,
        "a.flag": True,
        "a.tokens": ["one", "two", ""],
        "a.scores": [0.5, 1.5],
        "a.nested": [["x"], ["y", "z"]],
        "general.alignment": 32,
    },
    [("t", (32, 2), "Q4_0"), ("u", (3,), "F32")],
)
HEADER = read_gguf(MemorySource("x", SMALL)).files[0].header_bytes


def read(content: bytes, limits: Limits = LIMITS) -> None:
    """Read everything that there is to read."""
    found = read_gguf(MemorySource("x", content), limits=limits)
    for field in found.files[0].fields:
        if isinstance(field.value, Array):
            field.value.items()


def error_of(content: bytes, limits: Limits = LIMITS) -> AuditError:
    with pytest.raises(AuditError) as caught:
        read(content, limits)
    assert caught.value.where.file == "x"
    return caught.value


def read_or_refuse(content: bytes) -> None:
    """Read everything, or be refused: any other exception fails the test."""
    with contextlib.suppress(AuditError):
        read(content)


@pytest.mark.parametrize("length", range(HEADER))
def test_a_header_cut_anywhere_is_malformed(length: int) -> None:
    found = error_of(SMALL[:length])
    assert type(found) is MalformedError
    assert found.where.offset is not None
    assert found.where.offset <= length


@pytest.mark.parametrize("length", [HEADER, HEADER + 1, len(SMALL) - 1, len(SMALL)])
def test_data_cut_anywhere_is_left_to_rules(length: int) -> None:
    read(SMALL[:length])


def test_a_cut_says_what_was_read_where_and_how_much_is_missing() -> None:
    content = build_gguf({"general.architecture": "llama"})
    found = error_of(content[:-2])
    at = content.index(b"llama")
    assert found.message == (
        f"the file ends inside a string: 5 bytes wanted at offset {at}, 3 left, 2 missing"
    )
    assert found.where == Where(file="x", offset=at, key="general.architecture")
    content = build_gguf({"a": ["one", "eleven more"]})
    found = error_of(content[:-1])
    at = content.index(b"eleven")
    assert found.message == (
        f"the file ends inside an array, string 2 of 2: 11 bytes wanted at offset {at}, 10 left, "
        "1 missing"
    )
    assert found.where == Where(file="x", offset=at, key="a")
    found = error_of(content[: at - 8])
    assert found.message == (
        "the array claims 2 items of type string, which take at least 16 bytes, but 11 are left; "
        "is the file cut short?"
    )
    name = SMALL.rindex(b"u")
    found = error_of(SMALL[: name + 1])
    assert found.message == (
        f"the file ends inside the number of dimensions: 4 bytes wanted at offset {name + 1}, "
        "0 left, 4 missing"
    )
    assert found.where == Where(file="x", offset=name + 1, tensor="u")


@given(
    flips=st.lists(
        st.tuples(st.integers(0, HEADER - 1), st.integers(0, 255)), min_size=1, max_size=6
    )
)
def test_flipped_bytes_give_a_model_or_an_audit_error(flips: list[tuple[int, int]]) -> None:
    content = bytearray(SMALL)
    for place, byte in flips:
        content[place] = byte
    read_or_refuse(bytes(content))


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_give_a_model_or_an_audit_error(tail: bytes, big: bool) -> None:
    version = struct.pack(">I" if big else "<I", 3)
    for content in (tail, b"GGUF" + tail, b"GGUF" + version + tail):
        read_or_refuse(content)


def pack(byte_order: ByteOrder, form: str, *values: int) -> bytes:
    return struct.pack(("<" if byte_order == "little" else ">") + form, *values)


def lies(byte_order: ByteOrder, version: int, number: int) -> dict[str, bytes]:
    """Return a file for every count and length of the format that says ``number``."""

    def head(tensors: int, keys: int) -> bytes:
        return b"GGUF" + pack(byte_order, "IQQ", version, tensors, keys)

    def text(content: bytes) -> bytes:
        return pack(byte_order, "Q", len(content)) + content

    def array(item_type: int, count: int) -> bytes:
        return head(0, 1) + text(b"k") + pack(byte_order, "IIQ", 9, item_type, count)

    room = bytes(200)
    return {
        "tensors": head(number, 0) + room,
        "keys": head(0, number) + room,
        "key length": head(0, 1) + pack(byte_order, "Q", number) + room,
        "string length": head(0, 1) + text(b"k") + pack(byte_order, "IQ", 8, number) + room,
        "name length": head(1, 0) + pack(byte_order, "Q", number) + room,
        "inner string": array(8, 2) + text(b"a") + pack(byte_order, "Q", number) + room,
        "nested": array(9, 1) + pack(byte_order, "IQ", 5, number) + room,
        **{f"array of {item.name}": array(item, number) + room for item in ValueType},
    }


@pytest.mark.parametrize("number", [1 << 61, 1 << 63, (1 << 64) - 1, 1 << 40, 1000])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_counts_and_lengths_beyond_the_file_are_refused_at_once(
    byte_order: ByteOrder, version: int, number: int
) -> None:
    for what, content in lies(byte_order, version, number).items():
        begin = time.process_time()
        found = error_of(content)
        assert type(found) is MalformedError, what
        assert str(number) in found.message, what
        assert time.process_time() - begin < 5, what


STRINGS: dict[str, FieldValue] = {"a": ["x", "y"], "b": ["z"]}


@pytest.mark.parametrize(
    ("limits", "fields", "tensors", "message"),
    [
        (LIMITS._replace(metadata_keys=1), {"a": 1, "b": 2}, [], "2 keys, more than the 1 "),
        (LIMITS._replace(tensors=0), {}, [("t", (1,), "F32")], "1 tensors, more than the 0 "),
        (LIMITS._replace(key_bytes=2), {"abc": 1}, [], "key 1 of 1 is 3 bytes long, more than 2"),
        (LIMITS, {}, [("t" * 64, (1,), "F32")], "is 64 bytes long, more than 63"),
        (LIMITS._replace(string_bytes=3), {"a": "abcd"}, [], "a string of 4 bytes"),
        (LIMITS._replace(string_bytes=3), {"a": "ab", "b": "cd"}, [], "together exceed 3 bytes"),
        (LIMITS._replace(array_items=1), {"a": [1, 2]}, [], "2 items, more than the 1 "),
        (LIMITS._replace(array_strings=2), STRINGS, [], "more than the 2 strings"),
        (LIMITS._replace(array_depth=2), {"a": [[[1]]]}, [], "deeper than the 2 levels"),
        (LIMITS._replace(nested_arrays=1), {"a": [[1], [2]]}, [], "more than the 1 arrays inside"),
        (LIMITS._replace(header_bytes=40), {"a": "x" * 9}, [], "behind its first 40 bytes"),
        (LIMITS._replace(header_bytes=60), {"a": [1] * 9}, [], "behind its first 60 bytes"),
        (LIMITS, {"general.alignment": 1 << 21}, [], "the alignment is 2097152, more than"),
    ],
)
def test_each_limit_is_enforced(
    limits: Limits,
    fields: dict[str, FieldValue],
    tensors: list[tuple[str, tuple[int, ...], str]],
    message: str,
) -> None:
    content = build_gguf(fields, tensors)
    found = error_of(content, limits)
    assert type(found) is LimitError
    assert message in found.message


@pytest.mark.parametrize(
    "key",
    [
        "general.architecture",
        "tokenizer.ggml.model",
        "tokenizer.ggml.pre",
        "general.type",
        "llama.rope.scaling.type",
        "clip.projector_type",
    ],
)
def test_a_name_is_no_longer_than_a_key(key: str) -> None:
    longest = "n" * LIMITS.key_bytes
    found = read_gguf(MemorySource("x", build_gguf({key: longest, "general.name": f"{longest}n"})))
    assert found.string(key) == longest
    refused = error_of(build_gguf({key: f"{longest}n"}))
    assert type(refused) is LimitError
    assert refused.message == "a name of 65536 bytes, more than 65535"
    assert refused.where.key == key


@pytest.mark.parametrize("more", [0, 1])
def test_a_token_may_be_as_long_as_a_value(tmp_path: Path, more: int) -> None:
    content = build_gguf({"tokenizer.ggml.tokens": ["a"]})
    size = LIMITS.string_bytes + more
    begin = content.rindex(struct.pack("<Q", 1) + b"a")
    with (tmp_path / "x").open("wb") as file:
        file.write(content[:begin] + struct.pack("<Q", size))
        file.truncate(begin + 8 + size + 64)
    if not more:
        assert open_gguf(tmp_path / "x").array("tokenizer.ggml.tokens")
        return
    with pytest.raises(
        LimitError, match="string 1 of 1 has 67108865 bytes, more than the 67108864"
    ):
        open_gguf(tmp_path / "x")


def test_a_limit_is_the_last_number_that_is_read() -> None:
    exact = LIMITS._replace(
        metadata_keys=7,
        tensors=2,
        key_bytes=20,
        string_bytes=5,
        array_items=2,
        array_strings=6,
        array_depth=2,
        nested_arrays=2,
        header_bytes=HEADER,
        alignment_bytes=32,
    )
    read(SMALL, exact)


def test_more_items_than_the_limit_are_passed_but_not_unpacked() -> None:
    content = build_gguf({"a": [1, 2, 3]})
    found = read_gguf(MemorySource("x", content), limits=LIMITS._replace(array_strings=2))
    array = found.array("a")
    assert array is not None
    with pytest.raises(LimitError, match="more than the 2 that we unpack"):
        array.items()


def test_all_strings_that_are_decoded_share_a_limit() -> None:
    fields: dict[str, FieldValue] = {"a": ["<xy"], "b": [["<yz"]], "c": ["<zx"]}
    # A string with its length, an array's type and count before one, a string alone.
    limits = LIMITS._replace(decoded_bytes=11 + (12 + 11) + 3)
    found = read_gguf(MemorySource("x", build_gguf(fields)), limits=limits)
    flat, nested, last = (found.array(key) for key in "abc")
    assert flat is not None
    assert nested is not None
    assert last is not None
    for _ in range(2):  # What is kept costs nothing again.
        assert flat.items() == ("<xy",)
        assert nested.items() == ("<yz",)
        assert last.some((), ("<",)) == {0: "<zx"}
    with pytest.raises(LimitError) as refused:
        last.items()
    assert refused.value.where == Where(file="x", offset=last.offset)
    assert refused.value.message == (
        "11 more bytes of strings of an array, and all arrays together exceed the 37 that we decode"
    )
    assert [*last.texts()] == [b"<zx"]


@pytest.mark.parametrize("how", ["indexes", "starts"])
def test_some_strings_are_no_way_around_that_limit(how: str) -> None:
    limits = LIMITS._replace(decoded_bytes=5)
    content = build_gguf({"a": ["<ab", "<cd"]})
    array = read_gguf(MemorySource("x", content), limits=limits).array("a")
    assert array is not None
    with pytest.raises(LimitError, match="3 more bytes of strings of an array"):
        array.some((0, 1) if how == "indexes" else (), ("<",) if how == "starts" else ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((ValueType.UINT32, 0), "the alignment is 0, expected a power of two"),
        ((ValueType.UINT32, 48), "the alignment is 48, expected a power of two"),
        ((ValueType.UINT64, 32), "the alignment is of type uint64, expected uint32"),
        ((ValueType.BOOL, 1), "the alignment is of type bool, expected uint32"),
        ("32", "the alignment is of type string, expected uint32"),
        ([32], "the alignment is of type array, expected uint32"),
    ],
)
def test_an_alignment_that_aligns_nothing_is_malformed(value: FieldValue, message: str) -> None:
    found = error_of(build_gguf({"a": 1, "general.alignment": value}))
    assert type(found) is MalformedError
    assert found.message == message
    assert found.where == Where(file="x", offset=41, key="general.alignment")


@pytest.mark.parametrize("alignment", [1, 8, 64, 4096, 1 << 20])
def test_any_power_of_two_aligns(alignment: int) -> None:
    content = build_gguf({"general.alignment": alignment}, [("t", (1,), "F32")], data="none")
    file = read_gguf(MemorySource("x", content)).files[0]
    assert file.alignment == alignment


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1,) * 5, "the tensor has 5 dimensions, expected at most 4"),
        ((1,) * 9, "the tensor has 9 dimensions, expected at most 4"),
        (((1 << 64) - 32,), "a dimension is 18446744073709551584 (-32 as the signed"),
        ((1 << 32,) * 4, "340282366920938463463374607431768211456 elements"),
        ((1 << 62, 2), "9223372036854775808 elements, more than 2^63 - 1"),
    ],
)
def test_shapes_that_ggml_can_not_hold_are_malformed(shape: tuple[int, ...], message: str) -> None:
    found = error_of(build_gguf({}, [("t", shape, "I8")], data="none"))
    assert type(found) is MalformedError
    assert message in found.message
    assert found.where.tensor == "t"


def test_types_of_values_that_do_not_exist_are_malformed() -> None:
    number = build_gguf({"k": 1})
    for code in (13, 256, (1 << 32) - 1):
        wrong = number[:33] + struct.pack("<I", code) + number[37:]
        found = error_of(wrong)
        assert found.message == f"the value has type {code}, expected one of 0 to 12"
        assert found.where == Where(file="x", offset=33, key="k")
    array = build_gguf({"k": [1]})
    found = error_of(array[:37] + struct.pack("<I", 13) + array[41:])
    assert found.message == "the array's items have type 13, expected one of 0 to 12"
    assert found.where == Where(file="x", offset=37, key="k")


def test_a_key_without_a_name_is_malformed() -> None:
    found = error_of(build_gguf({"a": 1, "": 2}))
    assert type(found) is MalformedError
    assert (found.message, found.where) == ("key 2 of 2 has no name", Where(file="x", offset=41))


def test_a_body_in_the_other_byte_order_is_told() -> None:
    little, big = build_gguf({"a": 1}), build_gguf({"a": 1}, byte_order="big")
    found = error_of(big[:8] + little[8:])
    assert "read as little-endian it is 1: the version is in another byte order" in found.message
    found = error_of(little[:8] + big[8:])
    assert "read as big-endian it is 1: the version is in another byte order" in found.message


LFS = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 4683073632\n"
)


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"", MalformedError, "the file is empty"),
        (b"GG", MalformedError, "the file ends inside the magic: 4 bytes wanted, 2 there"),
        (LFS, MalformedError, "a Git LFS pointer to 4683073632 bytes with oid sha256:4d7a2146"),
        (b"<!DOCTYPE html><html>", MalformedError, "a web page"),
        (b"\xef\xbb\xbf\n<HTML>", MalformedError, "a web page"),
        (b'{"error": "not found"}', MalformedError, "JSON text"),
        (b"PK\3\4rest", UnsupportedError, "a zip archive"),
        (b"\x1f\x8b\x08rest", UnsupportedError, "a gzip archive"),
        (b"\x80\x02}q\x00.", UnsupportedError, "a Python pickle"),
        (b"\x40" + bytes(7) + b'{"a":1}'.ljust(64), UnsupportedError, "a safetensors file"),
        (b"tjgg\3\0\0\0", UnsupportedError, "a ggjt file, from before GGUF"),
        (b"lmgg\0\0\0\0", UnsupportedError, "a ggml file, from before GGUF"),
        (b"fmgg\1\0\0\0", UnsupportedError, "a ggmf file, from before GGUF"),
        (b"FUGG\3\0\0\0", MalformedError, "its bytes swapped"),
        (bytes(4096), MalformedError, "begins with zeros"),
        (b"\x1b[2J", MalformedError, "begins with the bytes 1b 5b 32 4a, not with GGUF"),
        (b"---\nlicense: mit", MalformedError, 'the file begins with "---", not with GGUF'),
        (b"Hello, this is a letter", MalformedError, 'begins with "Hello, this is a", not with'),
        (b"\nHello", MalformedError, "begins with the bytes 0a 48 65 6c, not with GGUF"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(16), UnsupportedError, "GGUF version 1"),
        (b"GGUF" + struct.pack(">I", 1) + bytes(16), UnsupportedError, "GGUF version 1"),
        (b"GGUF" + struct.pack("<I", 4) + bytes(16), UnsupportedError, "GGUF version 4 isn't"),
        (b"GGUF" + struct.pack(">I", 4) + bytes(16), UnsupportedError, "GGUF version 4 isn't"),
        (b"GGUF" + bytes(20), MalformedError, "the version is 0, expected 2 or 3"),
        (b"GGUF" + b"\xff" * 20, MalformedError, "the version is 4294967295, expected 2 or 3"),
        (b"GGUF\0\0\1\0" + bytes(16), MalformedError, "the version is 65536, expected 2 or 3"),
    ],
)
def test_other_files_are_called_by_their_name(
    content: bytes, kind: type[AuditError], message: str
) -> None:
    found = error_of(content)
    assert type(found) is kind
    assert message in found.message


def test_what_can_not_be_opened_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent\.gguf: No such file or directory"):
        open_gguf(tmp_path / "absent.gguf")
    with pytest.raises(SourceError, match="it is a folder"):
        open_gguf(tmp_path)


def test_a_file_that_was_cut_meanwhile_gives_no_items(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(build_gguf({"a": ["x", "y"]}))
    array = open_gguf(path).array("a")
    path.write_bytes(b"GGUF")
    assert array is not None
    with pytest.raises(SourceError, match="changed or replaced"):
        array.items()

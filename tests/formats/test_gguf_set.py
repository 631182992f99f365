"""Split sets, opened from any shard."""

from __future__ import annotations

from pathlib import Path

import pytest

from gguf_audit.errors import AuditError, LimitError, MalformedError, SourceError
from gguf_audit.formats.gguf import ShardName, open_gguf, read_gguf_set, shard_name
from gguf_audit.gguf import Gguf, ValueType
from gguf_audit.limits import LIMITS
from gguf_audit.sources import MemoryTree
from gguf_audit.testing import FieldValue, build_gguf, split_gguf, write_gguf, write_split_gguf
from gguf_audit.where import Where

FIELDS: dict[str, FieldValue] = {"general.architecture": "llama", "llama.block_count": 3}
TENSORS = [(f"blk.{index}.w", (32, 4), "Q8_0") for index in range(5)]
ONE, TWO, THREE = (f"model-0000{number}-of-00003.gguf" for number in (1, 2, 3))


def shards() -> dict[str, bytes]:
    return split_gguf(FIELDS, TENSORS, shards=3)


def error_of(files: dict[str, bytes], name: str) -> AuditError:
    with pytest.raises(AuditError) as caught:
        read_gguf_set(MemoryTree(files), name)
    return caught.value


def said(number: int, count: int, tensors: int = 5, **others: FieldValue) -> dict[str, FieldValue]:
    return {
        "split.no": (ValueType.UINT16, number),
        "split.count": (ValueType.UINT16, count),
        "split.tensors.count": (ValueType.INT32, tensors),
        **others,
    }


def summary(found: Gguf) -> object:
    return (
        [file.name for file in found.files],
        {key: field.value for key, field in found.fields.items()},
        [(tensor.name, tensor.file, tensor.offset) for tensor in found.tensors.values()],
    )


@pytest.mark.parametrize("name", [ONE, TWO, THREE])
def test_a_set_is_one_model_from_any_shard(name: str) -> None:
    found = read_gguf_set(MemoryTree({**shards(), "other.gguf": b"", "README": b""}), name)
    assert found.name == name
    assert summary(found) == (
        [ONE, TWO, THREE],
        {
            "general.architecture": "llama",
            "llama.block_count": 3,
            "split.no": 0,
            "split.count": 3,
            "split.tensors.count": 5,
        },
        [
            ("blk.0.w", 0, 0),
            ("blk.1.w", 0, 160),
            ("blk.2.w", 1, 0),
            ("blk.3.w", 1, 160),
            ("blk.4.w", 2, 0),
        ],
    )
    assert [tensor.file for file in found.files for tensor in file.tensors] == [0, 0, 1, 1, 2]


def test_a_set_on_disk_takes_no_room_and_keeps_its_dimensions(tmp_path: Path) -> None:
    big = [(f"blk.{index}.w", (8192, 65536), "F16") for index in range(29)]
    paths = write_split_gguf(tmp_path, FIELDS, big, shards=3)
    assert [path.name for path in paths] == [ONE, TWO, THREE]
    assert sum(path.stat().st_size for path in paths) > 29 << 30
    assert sum(path.stat().st_blocks * 512 for path in paths) < 1 << 20
    for path in paths:
        found = open_gguf(path)
        assert found.name == str(path)
        assert sum(tensor.size_bytes or 0 for tensor in found.tensors.values()) == 29 << 30


def test_links_to_shards_elsewhere_are_followed(tmp_path: Path) -> None:
    store, folder = tmp_path / "store", tmp_path / "models"
    store.mkdir()
    folder.mkdir()
    for path in write_split_gguf(store, FIELDS, TENSORS, shards=2):
        (folder / path.name).symlink_to(path)
    assert len(open_gguf(folder / "model-00002-of-00002.gguf").files) == 2


def test_a_shard_is_found_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_split_gguf(tmp_path, FIELDS, TENSORS, shards=2)
    monkeypatch.chdir(tmp_path)
    assert len(open_gguf("model-00001-of-00002.gguf").tensors) == 5


@pytest.mark.parametrize("name", ["model.gguf", "model-00001-of-00001.gguf", ONE])
def test_a_file_that_claims_no_siblings_stands_alone(name: str) -> None:
    # llama.cpp goes by split.count and not by the name.
    for fields in ({"a": 1}, said(0, 1), said(0, 0)):
        content = build_gguf(dict[str, FieldValue](fields), TENSORS)
        found = read_gguf_set(MemoryTree({name: content}), name)
        assert [file.name for file in found.files] == [name]


def test_missing_shards_are_named() -> None:
    files = shards()
    del files[TWO], files[THREE]
    found = error_of(files, ONE)
    assert type(found) is SourceError
    assert found.message == f"of 3 shards 2 missing: {TWO}, {THREE}"
    assert found.where == Where(file=TWO)


def test_missing_shards_are_not_all_named_where_there_are_many() -> None:
    files = {"m-00001-of-00100.gguf": build_gguf(said(0, 100))}
    found = error_of(files, "m-00001-of-00100.gguf")
    assert found.message.startswith("of 100 shards 99 missing: m-00002-of-00100.gguf, ")
    assert found.message.endswith("m-00033-of-00100.gguf and 67 more")


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        (said(2, 4), "split.count", f"shard {THREE} has 4 in split.count, expected 3"),
        (said(1, 3), "split.no", f"shard {THREE} has 1 in split.no, expected 2"),
        ({}, "split.count", f"shard {THREE} has no such number in split.count, expected 3"),
        (
            {"split.count": (ValueType.UINT16, 3)},
            "split.no",
            f"shard {THREE} has no such number in split.no, expected 2",
        ),
    ],
)
def test_a_shard_that_disagrees_is_named(
    fields: dict[str, FieldValue], key: str, message: str
) -> None:
    files = {**shards(), THREE: build_gguf(fields, TENSORS[4:])}
    found = error_of(files, ONE)
    assert type(found) is MalformedError
    assert found.message == message
    assert found.where == Where(file=THREE, key=key)


@pytest.mark.parametrize("name", [TWO, THREE])
def test_a_shard_of_another_byte_order_is_named(name: str) -> None:
    number = (ONE, TWO, THREE).index(name)
    parts = (TENSORS[:2], TENSORS[2:4], TENSORS[4:])
    swapped = build_gguf(said(number, 3), parts[number], byte_order="big")
    for given in (ONE, name):
        found = error_of({**shards(), name: swapped}, given)
        assert type(found) is MalformedError
        assert found.message == (
            f"shard {name} is big-endian, {ONE} is little-endian: nothing loads both"
        )
        assert found.where == Where(file=name)


def test_a_set_may_be_big_endian() -> None:
    parts = enumerate((TENSORS[:2], TENSORS[2:4], TENSORS[4:]))
    files = {
        name: build_gguf({**FIELDS, **said(number, 3)}, part, byte_order="big")
        for name, (number, part) in zip((ONE, TWO, THREE), parts, strict=True)
    }
    assert len(read_gguf_set(MemoryTree(files), TWO).tensors) == 5


WRONG_TYPES: list[tuple[str, FieldValue, str]] = [
    ("split.count", "3", "string, expected uint16"),
    ("split.count", True, "bool, expected uint16"),
    ("split.count", -5, "int32, expected uint16"),
    # Plainly right, and yet refused: llama.cpp's get_key wants the very type.
    ("split.count", (ValueType.UINT32, 3), "uint32, expected uint16"),
    ("split.count", (ValueType.UINT64, 3), "uint64, expected uint16"),
    ("split.count", (ValueType.UINT16, [3]), "array, expected uint16"),
    ("split.no", (ValueType.UINT32, 0), "uint32, expected uint16"),
    ("split.tensors.count", (ValueType.UINT64, 5), "uint64, expected int32"),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG_TYPES)
def test_a_key_of_the_wrong_type_is_an_error(key: str, value: FieldValue, message: str) -> None:
    files = {**shards(), ONE: build_gguf({**said(0, 3), key: value}, TENSORS[:2])}
    found = error_of(files, ONE)
    assert type(found) is MalformedError
    assert found.message == f"{key} of {ONE} is {message}"
    assert (found.where.file, found.where.key) == (ONE, key)


def test_a_count_of_the_wrong_type_makes_no_single_file(tmp_path: Path) -> None:
    for count in ("1", (ValueType.UINT32, 1), (ValueType.INT32, -5)):
        path = write_gguf(tmp_path / "m.gguf", {**FIELDS, "split.count": count}, TENSORS)
        with pytest.raises(MalformedError, match=r"split\.count of .* expected uint16"):
            open_gguf(path)


def test_a_tensor_that_got_lost_is_noticed() -> None:
    files = {**shards(), THREE: build_gguf(said(2, 3))}
    found = error_of(files, TWO)
    assert found.message == f"the 3 shards hold 4 tensors, split.tensors.count of {ONE} says 5"
    assert found.where == Where(file=ONE, key="split.tensors.count")


def test_a_broken_shard_is_named() -> None:
    files = {**shards(), TWO: shards()[TWO][:40]}
    found = error_of(files, ONE)
    assert type(found) is MalformedError
    assert found.where.file == TWO


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("renamed.gguf", "this is shard number 2 of 3, but its name doesn't end in"),
        ("model-00002-of-00004.gguf", "says that there are 4 shards, split.count says 3"),
        ("model-00000-of-00003.gguf", "there is no shard 0 of 3"),
        ("model-00004-of-00003.gguf", "there is no shard 4 of 3"),
        ("model-000002-of-00003.gguf", "there is no shard 2 of 3"),
    ],
)
def test_a_name_that_disagrees_is_an_error(name: str, message: str) -> None:
    found = error_of({name: build_gguf(said(1, 3))}, name)
    assert type(found) is MalformedError
    assert message in found.message
    assert found.where == Where(file=name, key="split.count")


def test_a_set_of_too_many_shards_is_over_a_limit() -> None:
    content = build_gguf({"split.count": (ValueType.UINT16, 65_535)})
    assert type(error_of({ONE: content}, ONE)) is LimitError
    with pytest.raises(LimitError, match="3 shards, more than the 2"):
        read_gguf_set(MemoryTree(shards()), ONE, limits=LIMITS._replace(shards=2))


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"metadata_keys": 7}, f"with {TWO} the shards have 8 keys, more than 7 are not read"),
        ({"tensors": 4}, f"with {THREE} the shards have 5 tensors, more than 4 are not read"),
        ({"header_bytes": 500}, r"have \d+ bytes of headers, more than 500 are not read"),
    ],
)
def test_a_set_costs_no_more_than_one_file(limits: dict[str, int], says: str) -> None:
    with pytest.raises(LimitError, match=says) as caught:
        read_gguf_set(MemoryTree(shards()), ONE, limits=LIMITS._replace(**limits))
    assert caught.value.where.file in (TWO, THREE)


def test_names_of_shards_say_their_place() -> None:
    assert shard_name("a-b-00002-of-00013.gguf") == ShardName(stem="a-b", number=2, count=13)
    assert ShardName(stem="a", number=2, count=13).sibling(11) == "a-00011-of-00013.gguf"
    for name in ("a.gguf", "a-2-of-3.gguf", "-00001-of-00002.gguf", "a-00001-of-00002.gguf.part"):
        assert shard_name(name) is None


def test_keys_of_the_first_shard_come_first() -> None:
    files = {
        "m-00001-of-00002.gguf": build_gguf(said(0, 2, 0, a=1)),
        "m-00002-of-00002.gguf": build_gguf(said(1, 2, 0, a=2, b=3)),
    }
    found = read_gguf_set(MemoryTree(files), "m-00002-of-00002.gguf")
    assert (found.integer("a"), found.integer("b"), found.integer("split.no")) == (1, 3, 0)


def test_a_plain_file_on_disk_keeps_the_name_it_was_given(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", FIELDS, TENSORS)
    assert open_gguf(path).name == open_gguf(str(path)).files[0].name == str(path)

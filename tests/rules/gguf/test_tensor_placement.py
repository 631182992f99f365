from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.formats.ggml_types import tensor_type
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue, TensorSpec
from gguf_audit.where import Where
from gguf_audit_rules.gguf.tensor_placement import check
from rule_subjects import SETTINGS, info_offset, model, model_of

KEYS = {"general.architecture": "llama"}
#: Their data begins at 0, 128 and 256: 100 bytes are padded to 128.
FIRST, SECOND = TensorSpec("a", (25,)), TensorSpec("b", (32,))


def third(offset: int | None = None) -> TensorSpec:
    return TensorSpec("c", (32,), offset=offset)


def test_silent_for_tensors_end_to_end() -> None:
    assert list(check(model(KEYS, [FIRST, SECOND, third()]), SETTINGS)) == []


def test_silent_for_another_alignment() -> None:
    keys: dict[str, FieldValue] = {**KEYS, "general.alignment": 64}
    assert list(check(model(keys, [FIRST, SECOND, third()]), SETTINGS)) == []


def test_silent_for_empty_tensors() -> None:
    assert list(check(model(KEYS, [TensorSpec("e", (0, 4)), FIRST, third()]), SETTINGS)) == []


@pytest.mark.parametrize(
    ("offset", "wrong"),
    [
        (128, "overlaps the data of another tensor"),
        (224, "overlaps the data of another tensor"),
        (250, "overlaps the data of another tensor"),
        (288, "leaves a hole behind the data before it"),
        (260, "isn't a multiple of the alignment, 32"),
    ],
)
def test_fires_on_the_last_tensor(offset: int, wrong: str) -> None:
    subject = model(KEYS, [FIRST, SECOND, third(offset)])
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs offset 256 for the data of c, it has offset {offset}, which {wrong}",
            where=Where(file="model.gguf", tensor="c", offset=info_offset(subject, "c")),
            expected=256,
            actual=offset,
            unit="byte",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_once_for_a_hole_that_shifts_what_is_behind_it() -> None:
    subject = model(KEYS, [TensorSpec("a", (25,), offset=32), third(160)])
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs offset 0 for the data of a, it has offset 32, which leaves a hole "
            "behind the data before it",
            where=Where(file="model.gguf", tensor="a", offset=info_offset(subject, "a")),
            expected=0,
            actual=32,
            unit="byte",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_behind_a_type_of_unknown_size_only_the_alignment_counts() -> None:
    unknown = TensorSpec("a", (7,), tensor_type(9999))
    assert list(check(model(KEYS, [unknown, third(4096)]), SETTINGS)) == []
    subject = model(KEYS, [unknown, third(4097)])
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs a free, aligned offset for the data of c, it has offset 4097, which "
            "isn't a multiple of the alignment, 32",
            where=Where(file="model.gguf", tensor="c", offset=info_offset(subject, "c")),
            expected=None,
            actual=4097,
            unit="byte",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_behind_that_places_count_again() -> None:
    unknown = TensorSpec("a", (7,), tensor_type(9999))
    last = TensorSpec("d", (32,), offset=4192)
    [hit] = list(check(model(KEYS, [unknown, third(4096), last]), SETTINGS))
    assert isinstance(hit, Hit)
    assert (hit.where.tensor, hit.expected, hit.actual) == ("d", 4224, 4192)


def test_each_shard_begins_at_zero() -> None:
    good = model(KEYS, [FIRST, SECOND]).gguf
    bad = model(KEYS, [third(32)]).gguf.files[0]
    shards = (good.files[0], replace(good.files[0], name="2.gguf"))
    assert list(check(model_of(replace(good, files=shards)), SETTINGS)) == []
    shards = (good.files[0], replace(bad, name="2.gguf"))
    [hit] = list(check(model_of(replace(good, files=shards)), SETTINGS))
    assert isinstance(hit, Hit)
    assert (hit.where.file, hit.where.tensor, hit.expected) == ("2.gguf", "c", 0)


def said(*tensors: TensorSpec) -> list[tuple[str | None, object, str]]:
    hits = [hit for hit in check(model(KEYS, tensors), SETTINGS) if isinstance(hit, Hit)]
    return [(hit.where.tensor, hit.actual, hit.message.partition("which ")[2]) for hit in hits]


def at(name: str, offset: int) -> TensorSpec:
    """Return a tensor of 128 bytes."""
    return TensorSpec(name, (32,), offset=offset)


OVERLAPS = "overlaps the data of another tensor"
HOLE = "leaves a hole behind the data before it"


def test_a_hole_hides_no_overlap_behind_it() -> None:
    assert said(at("a", 0), at("b", 160), at("c", 224), at("d", 352), at("e", 384)) == [
        ("b", 160, f"{OVERLAPS}; 3 tensors are misplaced so"),
    ]
    assert said(at("a", 32), at("b", 160), at("c", 224), at("d", 353 + 128)) == [
        ("c", 224, OVERLAPS),
        ("d", 481, "isn't a multiple of the alignment, 32"),
        ("a", 32, HOLE),
    ]


def test_counts_of_each_kind() -> None:
    assert said(at("a", 32), at("b", 192), at("c", 320)) == [
        ("a", 32, f"{HOLE}; 2 tensors are misplaced so")
    ]


def test_data_in_another_order_overlaps_nothing() -> None:
    assert said(at("a", 128), at("b", 0), at("c", 256)) == [
        ("a", 128, f"{HOLE}; 3 tensors are misplaced so")
    ]
    assert said(at("a", 0), at("b", 256), at("c", 128)) == [
        ("b", 256, f"{HOLE}; 2 tensors are misplaced so")
    ]
    assert said(at("a", 0), at("b", 128), TensorSpec("e", (0,), offset=64)) == [
        ("e", 64, "is out of order")
    ]


def test_a_tensor_put_upon_a_later_one_is_one_cause() -> None:
    assert said(at("a", 0), at("b", 256), at("c", 256), at("d", 384)) == [("b", 256, OVERLAPS)]
    # Upon an earlier one, and the others where they were.
    assert said(at("a", 0), at("b", 0), at("c", 256), at("d", 384)) == [("b", 0, OVERLAPS)]
    # Into the open, and the others where they were.
    assert said(at("a", 0), at("b", 4096), at("c", 256), at("d", 384)) == [("b", 4096, HOLE)]


def test_an_overlap_behind_data_of_unknown_size() -> None:
    unknown = TensorSpec("u", (7,), tensor_type(9999), offset=128)
    assert said(at("a", 0), unknown, at("c", 64)) == [("c", 64, OVERLAPS)]

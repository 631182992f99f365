from __future__ import annotations

import dataclasses

import pytest

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
        (128, "overlaps the data before it"),
        (224, "overlaps the data before it"),
        (288, "leaves a hole behind the data before it"),
        (260, "isn't a multiple of the alignment, 32"),
        (250, "isn't a multiple of the alignment, 32"),
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
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_once_on_the_first_tensor() -> None:
    subject = model(KEYS, [TensorSpec("a", (25,), offset=32), third(32)])
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs offset 0 for the data of a, it has offset 32, which leaves a hole "
            "behind the data before it",
            where=Where(file="model.gguf", tensor="a", offset=info_offset(subject, "a")),
            expected=0,
            actual=32,
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
            message="needs an aligned offset for the data of c, it has offset 4097, which isn't "
            "a multiple of the alignment",
            where=Where(file="model.gguf", tensor="c", offset=info_offset(subject, "c")),
            expected=None,
            actual=4097,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_behind_that_places_count_again() -> None:
    unknown = TensorSpec("a", (7,), tensor_type(9999))
    last = TensorSpec("d", (32,), offset=4096)
    [hit] = list(check(model(KEYS, [unknown, third(4096), last]), SETTINGS))
    assert isinstance(hit, Hit)
    assert (hit.where.tensor, hit.expected, hit.actual) == ("d", 4224, 4096)


def test_each_shard_begins_at_zero() -> None:
    good = model(KEYS, [FIRST, SECOND]).gguf
    bad = model(KEYS, [third(32)]).gguf.files[0]
    shards = (good.files[0], dataclasses.replace(good.files[0], name="2.gguf"))
    assert list(check(model_of(dataclasses.replace(good, files=shards)), SETTINGS)) == []
    shards = (good.files[0], dataclasses.replace(bad, name="2.gguf"))
    [hit] = list(check(model_of(dataclasses.replace(good, files=shards)), SETTINGS))
    assert isinstance(hit, Hit)
    assert (hit.where.file, hit.where.tensor, hit.expected) == ("2.gguf", "c", 0)

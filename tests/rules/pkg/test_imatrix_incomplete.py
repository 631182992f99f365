from __future__ import annotations

import pytest

from adapter_subjects import MATRIX, matrix
from companion_subjects import Tensors, companion, file
from gguf_audit.gguf import Gguf, ValueType
from gguf_audit.rule import Hit, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.imatrix_incomplete import AGAIN, check
from rule_subjects import SETTINGS


def said(gguf: Gguf) -> list[Hit]:
    found = list(check(companion(gguf, "imatrix"), SETTINGS))
    return [hit for hit in found if isinstance(hit, Hit)]


@pytest.mark.parametrize("key", ["imatrix.datasets", "imatrix.chunk_count", "imatrix.chunk_size"])
def test_fires_for_each_key(key: str) -> None:
    assert said(matrix(lost=[key])) == [
        Hit(
            message=f"needs {key}, it is absent",
            where=Where(key=key),
            level=Severity.ERROR,
            repair=AGAIN,
        )
    ]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("imatrix.chunk_count", "4", "needs a u32, {} is string"),
        ("imatrix.chunk_size", (ValueType.INT32, 64), "needs a u32, {} is int32"),
        ("imatrix.datasets", "calibration.txt", "needs an array of strings, {} is string"),
        (
            "imatrix.datasets",
            (ValueType.INT32, [1]),
            "needs an array of strings, {} is an array of int32",
        ),
    ],
)
def test_fires_for_a_key_of_another_type(key: str, value: FieldValue, message: str) -> None:
    gguf = matrix(changed={key: value})
    assert said(gguf) == [
        Hit(
            message=message.format(key),
            where=Where(key=key, offset=gguf.fields[key].offset),
            level=Severity.ERROR,
            repair=AGAIN,
        )
    ]


def test_fires_as_a_warning_for_no_chunk() -> None:
    key = "imatrix.chunk_count"
    gguf = matrix(changed={key: 0})
    assert said(gguf) == [
        Hit(
            message=f"needs some chunks, {key} is 0: nothing was computed, or the number is lost",
            where=Where(key=key, offset=gguf.fields[key].offset),
            level=Severity.WARNING,
            repair=AGAIN,
        )
    ]


@pytest.mark.parametrize("name", ["blk.2.ffn_down.weight.counts", "blk.0.attn_q.weight.in_sum2"])
def test_fires_for_half_an_entry(name: str) -> None:
    [hit] = said(matrix(lost=[name]))
    assert hit.where == Where(tensor=name)


@pytest.mark.parametrize(
    "shapes",
    [
        {"blk.2.ffn_down.weight.counts": (1, 8)},
        {"blk.2.ffn_down.weight.in_sum2": (128, 8)},
        {"blk.0.attn_q.weight.in_sum": (32,)},
    ],
)
def test_fires_for_sizes_that_dont_go_together(shapes: Tensors) -> None:
    assert len(said(matrix(shapes=shapes))) == 1


def test_fires_for_no_entries() -> None:
    assert [hit.message for hit in said(file(MATRIX, {}))] == [
        "needs an entry for each weight, the file has none"
    ]


def test_silent_for_a_right_matrix() -> None:
    assert said(matrix()) == []
    experts = {
        "blk.0.ffn_up_exps.weight.in_sum2": (64, 8),
        "blk.0.ffn_up_exps.weight.counts": (1, 8),
    }
    assert said(matrix(shapes=experts)) == []

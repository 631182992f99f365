from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.evidence import Model
from gguf_audit.formats.ggml_types import tensor_type
from gguf_audit.rule import Hit, Replace, Severity
from gguf_audit.testing import TensorSpec
from gguf_audit.where import Where
from gguf_audit_rules.gguf.tensor_data_truncated import check
from rule_subjects import SETTINGS, gguf, model_of

KEYS = {"general.architecture": "llama"}
#: Two tensors of 128 and 68 bytes; the second one is padded to 96.
TWO = [("a", (32,), "F32"), ("b", (17,), "F32")]


def of_size(
    size: int | None = None, *, less: int = 0, tensors: list[TensorSpec] | None = None
) -> Model:
    """Return a model whose file has another size than its header wants."""
    file = gguf(KEYS, tensors or TWO)
    facts = file.files[0]
    size = facts.size_bytes - less if size is None else size
    return model_of(replace(file, files=(replace(facts, size_bytes=size),)))


def test_silent_where_everything_is_there() -> None:
    assert list(check(of_size(), SETTINGS)) == []


def test_silent_where_only_the_last_padding_is_missing() -> None:
    assert list(check(of_size(less=28), SETTINGS)) == []


def test_fires_for_one_missing_byte_of_the_last_tensor() -> None:
    model = of_size(less=29)
    facts = model.gguf.files[0]
    needed = facts.data_offset + 196
    assert list(check(model, SETTINGS)) == [
        Hit(
            message=f"needs {needed} bytes, model.gguf has {needed - 1}: 1 are missing, in 1 of "
            "2 tensors from b on",
            where=Where(file="model.gguf", tensor="b", offset=needed - 1),
            expected=needed,
            actual=needed - 1,
            unit="byte",
            level=Severity.ERROR,
            repair=Replace(),
        )
    ]


def test_names_the_first_tensor_that_is_cut() -> None:
    full = of_size().gguf.files[0]
    needed, has = full.data_offset + 196, full.data_offset + 100
    assert list(check(of_size(has), SETTINGS)) == [
        Hit(
            message=f"needs {needed} bytes, model.gguf has {has}: 96 are missing, in 2 of "
            "2 tensors from a on",
            where=Where(file="model.gguf", tensor="a", offset=has),
            expected=needed,
            actual=has,
            unit="byte",
            level=Severity.ERROR,
            repair=Replace(),
        )
    ]


@pytest.mark.parametrize("padded", [False, True])
def test_a_header_alone_has_none_of_its_data(padded: bool) -> None:
    facts = of_size().gguf.files[0]
    size = facts.data_offset if padded else facts.header_bytes
    [hit] = check(of_size(size), SETTINGS)
    assert isinstance(hit, Hit)
    assert (hit.where.tensor, hit.where.offset) == (facts.tensors[0].name, size)
    assert (hit.expected, hit.actual, hit.level) == (facts.data_offset + 196, size, Severity.ERROR)


def test_silent_for_a_header_that_promises_no_data() -> None:
    assert list(check(model_of(gguf(KEYS)), SETTINGS)) == []
    assert list(check(model_of(gguf(KEYS, [("empty", (0,), "F32")])), SETTINGS)) == []


def test_data_of_unknown_type_has_one_byte_at_the_least() -> None:
    unknown = [TensorSpec("a", (32,)), TensorSpec("b", (7,), tensor_type(9999))]
    facts = of_size(tensors=unknown).gguf.files[0]
    start = facts.data_offset + 128
    assert list(check(of_size(start + 1, tensors=unknown), SETTINGS)) == []
    assert list(check(of_size(start, tensors=unknown), SETTINGS)) == [
        Hit(
            message=f"needs {start + 1} bytes, model.gguf has {start}: 1 are missing, in 1 of "
            "2 tensors from b on",
            where=Where(file="model.gguf", tensor="b", offset=start),
            expected=start + 1,
            actual=start,
            unit="byte",
            level=Severity.ERROR,
            repair=Replace(),
        )
    ]


def test_every_shard_is_looked_at() -> None:
    good, bad = of_size(), of_size(less=29)
    shard = replace(bad.gguf.files[0], name="second.gguf")
    both = replace(good.gguf, files=(good.gguf.files[0], shard))
    [hit] = list(check(model_of(both), SETTINGS))
    assert isinstance(hit, Hit)
    assert hit.where == Where(file="second.gguf", tensor="b", offset=shard.size_bytes)

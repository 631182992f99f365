"""The values of small tensors."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import pytest

from gguf_audit.formats.gguf import read_gguf
from gguf_audit.gguf import NonFinite
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.sources import MemorySource
from gguf_audit.testing import ByteOrder, TensorSpec, build_gguf, make_gguf
from gguf_audit_rules.wt.value_not_finite import FLOATS

NAN, INF = math.nan, math.inf
#: The largest number of each type, which begins as what is infinite does in all but F16.
LARGEST = {"F64": 1.7976931348623157e308, "F32": 3.4028234663852886e38, "F16": 65504.0}
LARGEST["BF16"] = 3.3895313892515355e38


def stored(type_: str, values: Sequence[float], byte_order: ByteOrder) -> bytes:
    """Return values as a tensor of a type holds them."""
    order = "<" if byte_order == "little" else ">"
    if type_ == "BF16":
        wide = (struct.pack(">f", value)[:2] for value in values)
        return b"".join(each if order == ">" else each[::-1] for each in wide)
    code = {"F64": "d", "F32": "f", "F16": "e"}[type_]
    return struct.pack(f"{order}{len(values)}{code}", *values)


@pytest.mark.parametrize(("byte_order", "form"), [("little", "<3f"), ("big", ">3f")])
def test_values_of_the_last_tensor(byte_order: ByteOrder, form: str) -> None:
    data = struct.pack(form, 1.0, -2.5, 1e30)
    tensors = [TensorSpec("first", (5,)), TensorSpec("last", (3,), data=data)]
    content = build_gguf({}, tensors, byte_order=byte_order)
    file = read_gguf(MemorySource("model.gguf", content))
    assert file.values("last") == struct.unpack(form, data)
    assert file.values("first") == (0.0,) * 5


def test_a_tensor_that_is_not_there() -> None:
    assert make_gguf().values("none") == Absent("there is no none")


def test_no_more_than_a_limit_is_read() -> None:
    most = LIMITS.factor_bytes // 4
    file = make_gguf({}, [TensorSpec("most", (most,)), TensorSpec("more", (most + 1,))])
    assert file.values("most") == (0.0,) * most
    assert file.values("more") == Absent(
        "more has 16,388 bytes, more than the 16,384 that are read"
    )


def non_finite(
    type_: str, values: Sequence[float], byte_order: ByteOrder = "little"
) -> NonFinite | Absent | None:
    data = stored(type_, values, byte_order)
    tensors = [TensorSpec("first", (5,)), TensorSpec("last", (len(values),), type_, data)]
    content = build_gguf({}, tensors, byte_order=byte_order)
    file = read_gguf(MemorySource("model.gguf", content))
    return file.non_finite(file.tensors["last"])


@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize("type_", sorted(FLOATS))
def test_what_is_not_finite_is_found_in_every_type(type_: str, byte_order: ByteOrder) -> None:
    largest = LARGEST[type_]
    finite = (largest, -largest, 0.0, -1.0, 1e-7)
    assert non_finite(type_, finite, byte_order) is None
    for value in (INF, -INF):
        assert non_finite(type_, (*finite, value), byte_order) == NonFinite(
            index=5, value=value, count=1, lowest=int(value < 0), highest=int(value > 0)
        )
    found = non_finite(type_, (*finite, NAN, -INF, 1.0, INF, -INF), byte_order)
    assert isinstance(found, NonFinite)
    assert math.isnan(found.value)
    assert (found.index, found.count, found.lowest, found.highest) == (5, 4, 2, 1)


@pytest.mark.parametrize("bits", [0x7F800001, 0xFF800001, 0x7FC00000, 0xFFFFFFFF])
def test_every_nan_is_one(bits: int) -> None:
    content = build_gguf({}, [TensorSpec("a", (1,), data=struct.pack("<I", bits))])
    file = read_gguf(MemorySource("model.gguf", content))
    found = file.non_finite(file.tensors["a"])
    assert isinstance(found, NonFinite)
    assert (found.index, found.count) == (0, 1)


def test_what_is_not_looked_at_is_absent() -> None:
    size = LIMITS.floats_bytes + 2
    tensors = [TensorSpec("long", (size // 2,), "F16"), TensorSpec("whole", (4,), "I32")]
    file = make_gguf({}, tensors)
    assert [file.non_finite(each) for each in file.tensors.values()] == [
        Absent("long has 1,048,578 bytes, more than the 1,048,576 that are read"),
        Absent("whole is stored as I32, which is no type of floats"),
    ]
    file = read_gguf(MemorySource("model.gguf", build_gguf({}, [TensorSpec("a", (4,))])[:-32]))
    assert file.non_finite(file.tensors["a"]) == Absent("model.gguf has no data for a")


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_the_first_value_below_zero_is_found(byte_order: ByteOrder) -> None:
    def negative(type_: str, *values: float) -> tuple[int, float] | Absent | None:
        data = stored(type_, values, byte_order)
        tensors = [TensorSpec("first", (5,)), TensorSpec("last", (len(values),), type_, data)]
        content = build_gguf({}, tensors, byte_order=byte_order)
        file = read_gguf(MemorySource("model.gguf", content))
        return file.negative(file.tensors["last"])

    assert negative("F32", 0.0, 1e-30, INF, NAN) is None
    assert negative("F32", -0.0, -NAN) is None
    assert negative("F32", 1.0, -2.5, -INF) == (1, -2.5)
    assert negative("F16", -1.0) == Absent("last is stored as F16, only F32 is read")

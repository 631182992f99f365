"""The values of small tensors."""

from __future__ import annotations

import struct

import pytest

from gguf_audit.formats.gguf import read_gguf
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.sources import MemorySource
from gguf_audit.testing import ByteOrder, TensorSpec, build_gguf, make_gguf


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

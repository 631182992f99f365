from __future__ import annotations

from typing import Literal

import pytest

from gguf_audit.gguf import Array, ValueType
from gguf_audit.testing import make_gguf

TEXTS = [
    "",
    "a",
    "<s>",
    "x<s>",
    "\0\0\0\0\0\0<no",
    "<\u00e9>",
    "x" * 300,
    "<" + "y" * 70_000,
    "",
    "<end>",
]


def array(texts: list[str], byte_order: str = "little") -> Array:
    order: Literal["little", "big"] = "big" if byte_order == "big" else "little"
    made = make_gguf({"k": (ValueType.STRING, texts)}, byte_order=order)
    found = made.array("k")
    assert found is not None
    return found


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_some_are_those_of_all(byte_order: str) -> None:
    for indexes in ((), (0,), (3, 8), (99, -1), range(10)):
        stored = array(TEXTS, byte_order)
        expected = {
            index: text
            for index, text in enumerate(TEXTS)
            if index in indexes or (text.startswith("<") and len(text) < 70_000)
        }
        found = dict(stored.some(indexes, ("<",)))
        if 7 not in indexes:
            # A length of more than two bytes isn't looked for, and no token has one.
            found.pop(7, None)
        assert found == expected


def test_bytes_that_are_no_text_stay() -> None:
    assert array(["<\udcff", "b"]).some((1,), ("<",)) == {0: "<\udcff", 1: "b"}


def test_an_empty_array_has_none() -> None:
    assert array([]).some((0,), ("<",)) == {}

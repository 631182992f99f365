"""What was read is remembered, and so is why something couldn't be."""

from __future__ import annotations

import pytest

from gguf_audit.errors import SourceError
from gguf_audit.once import once


def test_everything_is_asked_for_once() -> None:
    asked: list[str] = []

    def read(name: str) -> str:
        asked.append(name)
        if name == "c":
            raise SourceError("no such file")
        return name.upper()

    remembered = once(read)
    for _ in range(2):
        assert [remembered("a"), remembered("b")] == ["A", "B"]
        with pytest.raises(SourceError) as caught:
            remembered("c")
        assert caught.value.message == "no such file"
    assert asked == ["a", "b", "c"]


def test_only_the_latest_are_remembered() -> None:
    asked: list[str] = []

    def read(name: str) -> str:
        asked.append(name)
        return name.upper()

    remembered = once(read, most=2)
    assert [*map(remembered, "ababcba")] == [*"ABABCBA"]
    assert asked == [*"abca"]

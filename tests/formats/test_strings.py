from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.formats._strings import ByteOrder, StringIndex, Strings, whole_strings

#: What strings with zeros in them, before or behind them, could be mistaken for.
PIECES = [b"", b"\0", b"\0" * 5, b"\0" * 7, b"\0" * 8, b"\0" * 14, b"\1", b"a", b"\1" + b"\0" * 7]
texts = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=12),
        st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join),
        st.sampled_from([b"x" * size for size in (246, 247, 248, 255, 256, 300)]),
    ),
    max_size=40,
)


def stored(strings: list[bytes], order: ByteOrder = "little") -> bytes:
    form = "<Q" if order == "little" else ">Q"
    return b"".join(pack(form, len(text)) + text for text in strings)


def begins(strings: list[bytes]) -> list[int]:
    return [sum(8 + len(text) for text in strings[:index]) for index in range(len(strings))]


@given(texts, st.sampled_from(["little", "big"]))
def test_strings_come_back(strings: list[bytes], order: ByteOrder) -> None:
    data = stored(strings, order)
    found = whole_strings(data, len(strings), order)
    assert found == Strings(strings, begins(strings), len(data))


@given(texts, st.integers(0, 300), st.integers(0, 50), st.binary(max_size=40))
def test_no_more_come_than_are_whole_and_wanted(
    strings: list[bytes], cut: int, most: int, behind: bytes
) -> None:
    data = stored(strings)
    part = data[: max(len(data) - cut, 0)]
    ends = [*begins(strings)[1:], len(data)] if strings else []
    whole = sum(end <= len(part) for end in ends[:most])
    assert list(whole_strings(part, min(most, len(strings)), "little").texts) == strings[:whole]
    found = whole_strings(data + behind, len(strings), "little")
    assert (list(found.texts), found.end) == (strings, len(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_taken_as_their_lengths_say(data: bytes) -> None:
    found = whole_strings(data, len(data), "little")
    assert stored(list(found.texts)) == data[: found.end]
    rest = data[found.end :]
    assert len(rest) < 8 or int.from_bytes(rest[:8], "little") > len(rest) - 8


@pytest.mark.parametrize("place", range(1, 8))
def test_a_length_of_other_bytes_than_its_first_is_one(place: int) -> None:
    data = bytearray(stored([b"a", b"bcd", b"e", b"f"]))
    data[9 + place] = 1
    assert whole_strings(bytes(data), 4, "little") == Strings([b"a"], [0], 9)


@pytest.mark.parametrize("size", [1, 247, 248, 255, 256, 65_535, 65_536])
def test_every_length(size: int) -> None:
    strings = [b"a", b"x" * size, b"b", b"c"]
    data = stored(strings)
    assert whole_strings(data, 4, "little") == Strings(strings, begins(strings), len(data))


@given(texts, st.integers(1, 8))
def test_an_index_knows_where_they_stand(strings: list[bytes], at_once: int) -> None:
    some = [strings[start : start + at_once] for start in range(0, len(strings), at_once)]
    parts = (Strings(part, begins(part), len(stored(part))) for part in some)
    index = StringIndex(parts)
    data = stored(strings)
    found = [
        data[part.start : part.stop][part.where(number)]
        for part in index.parts
        for number in range(len(part.begins))
    ]
    assert found == strings
    assert [part.first for part in index.parts] == list(range(0, len(strings), at_once))
    for part in index.parts:
        known = {begin: number for number, begin in enumerate(part.begins)}
        size = part.stop - part.start
        assert {at: part.at(at) for at in range(size) if part.at(at) is not None} == known
        assert (part.at(-1), part.at(size)) == (None, None)
    assert index.fingerprints.repeats() == len(strings) - len(set(strings))

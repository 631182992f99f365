from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.fingerprints import Fingerprints

texts = st.lists(st.binary(max_size=3), max_size=200)


@given(texts)
def test_no_repeat_is_missed(given_texts: list[bytes]) -> None:
    found = Fingerprints(given_texts)
    assert found.repeats() == len(given_texts) - len(set(given_texts))


@given(texts, texts)
def test_no_stranger_is_taken_in(known: list[bytes], others: list[bytes]) -> None:
    found = Fingerprints(known)
    assert found.held(others) == sum(other in known for other in others)


@given(texts, st.integers(0, 200), st.integers(0, 200))
def test_a_part_in_its_order_is_held(known: list[bytes], first: int, length: int) -> None:
    part = known[first : first + length]
    assert Fingerprints(known).held(part) == len(part)


def test_many() -> None:
    many = [number.to_bytes(4, "big") for number in range(1 << 14)]
    found = Fingerprints(iter(many))
    assert (found.repeats(), found.held(many)) == (0, len(many))
    assert found.held([b"12345"]) == 0

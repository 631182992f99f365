from __future__ import annotations

from collections.abc import Callable

import pytest

from gguf_audit.parts import Loading


class Part(Loading, frozen=True, kw_only=True):
    name: str
    size: int = 0
    load: Callable[[], int] = lambda: 1
    load_more: Callable[[], int] = lambda: 2


class Other(Loading, frozen=True, kw_only=True):
    name: str
    size: int = 0


def test_how_a_value_reads_more_of_itself_tells_it_from_no_other() -> None:
    one, same = Part(name="a"), Part(name="a", load=lambda: 3, load_more=lambda: 4)
    assert one == same
    assert not one != same  # noqa: SIM202 - the other operator


@pytest.mark.parametrize("other", [Part(name="b"), Part(name="a", size=1), Other(name="a"), "a"])
def test_what_it_holds_and_is_does(other: object) -> None:
    one = Part(name="a")
    assert one != other
    assert not one == other  # noqa: SIM201 - the other operator


def test_it_has_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(Part(name="a"))

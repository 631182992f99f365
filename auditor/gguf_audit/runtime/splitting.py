"""How a reference splits texts before it merges anything, beside what llama.cpp does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct

__all__ = ["Difference", "Pieces", "Splitting", "differences"]

Pieces = tuple[str, ...]


class Splitting(Struct, frozen=True, kw_only=True):
    """The pieces of some texts, by the reference and by every name that llama.cpp knows."""

    reference: tuple[Pieces, ...]
    #: Name -> what llama.cpp does.
    named: Mapping[str, tuple[Pieces, ...]]
    #: Names of what splits as the reference does, or is meant for who does; usual first.
    right: tuple[str, ...]


class Difference(Struct, frozen=True):
    """A stretch of text that two splitters cut differently, as each of them does."""

    ours: Pieces
    theirs: Pieces


def differences(ours: Sequence[Pieces], theirs: Sequence[Pieces]) -> Iterator[Difference]:
    """Yield the stretches that are cut differently, from one common cut to the next.

    Two that join up to other texts differ as a whole: one of them has left something out.
    """
    for one, other in zip(ours, theirs, strict=True):
        if one == other:
            continue
        if "".join(one) != "".join(other):
            yield Difference(one, other)
            continue
        common = sorted(_cuts(one).keys() & _cuts(other).keys())
        for start, end in zip([0, *common], common, strict=False):
            left, right = _between(one, start, end), _between(other, start, end)
            if left != right:
                yield Difference(left, right)


def _cuts(pieces: Pieces) -> dict[int, int]:
    """Return the places where pieces end -> how many there are up to there."""
    return {end: count for count, end in enumerate(accumulate(map(len, pieces)), 1)}


def _between(pieces: Pieces, start: int, end: int) -> Pieces:
    cuts = _cuts(pieces)
    return pieces[cuts.get(start, 0) : cuts[end]]

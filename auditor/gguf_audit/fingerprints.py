"""Which of very many texts are equal, in little time and memory: 8 bytes for each.

A set of 262,144 texts takes 20 MB. Here each leaves its hash, and hashes are compared a
quarter at a time. Two different texts are taken for equal as seldom as two hashes of 64 bits
are, and whoever finds something looks again, at the texts themselves. Hashes of bytes are
salted for each process (PYTHONHASHSEED): nobody can make a file in which they collide.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import compress, islice
from struct import pack

__all__ = ["Fingerprints"]

#: Hashes that are numbers at one time.
_AT_ONCE = 4096
#: What any one byte of a hash chooses, of the hashes: a quarter each.
_QUARTERS = tuple(bytes(byte >> 6 == quarter for byte in range(256)) for quarter in range(4))


class Fingerprints:
    """What is left of some texts, to find equal ones by."""

    __slots__ = ("hashes",)

    def __init__(self, texts: Iterable[bytes] = ()) -> None:
        self.hashes = array("q")
        self.extend(texts)

    def extend(self, texts: Iterable[bytes]) -> None:
        """Take more texts."""
        more = iter(texts)
        while some := [*map(hash, islice(more, _AT_ONCE))]:
            # In half the time of an array that takes numbers one by one.
            self.hashes.frombytes(pack(f"{len(some)}q", *some))

    def repeats(self) -> int:
        """Return how many are likely to be equal to an earlier one; 0 is certain."""
        distinct = sum(len(set(hashes)) for hashes in _quarters(self.hashes))
        return len(self.hashes) - distinct

    def held(self, texts: Iterable[bytes]) -> int:
        """Return how many texts are likely to be among these; the others certainly aren't."""
        theirs = Fingerprints(texts).hashes
        if self._run(theirs):
            return len(theirs)
        quarters = zip(_quarters(self.hashes), _quarters(theirs), strict=True)
        return sum(sum(map(set(our).__contains__, their)) for our, their in quarters)

    def _run(self, theirs: array[int]) -> bool:
        """Tell whether these stand one after the other, as what merges make often does."""
        try:
            first = self.hashes.index(theirs[0])
        except (IndexError, ValueError):
            return False
        return self.hashes[first : first + len(theirs)] == theirs


def _quarters(hashes: array[int]) -> Iterator[Iterator[int]]:
    chosen_by = hashes.tobytes()[:: hashes.itemsize]
    for quarter in _QUARTERS:
        yield compress(hashes, chosen_by.translate(quarter))

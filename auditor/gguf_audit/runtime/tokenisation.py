"""What a reference's tokenizer and an installed llama.cpp made of the same texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

__all__ = ["Ids", "Tokenisation", "window"]

Ids = tuple[int, ...]


class Tokenisation(Struct, frozen=True, kw_only=True):
    """The ids of some texts, by the reference and by the file's own vocabulary."""

    #: Name and version of the llama.cpp that was asked.
    runtime: str
    #: Text -> ids by the reference, and by the file. Nothing is added around a text.
    texts: Mapping[str, tuple[Ids, Ids]]
    #: The same of these texts with a line feed in front, so that no more than that is
    #: changed where one of the two puts a space in front of a text.
    lines: Mapping[str, tuple[Ids, Ids]]
    #: The same of added tokens, each a text by itself.
    added: Mapping[str, tuple[Ids, Ids]]
    #: Id -> token as the reference spells it, of all ids that it used.
    names: Mapping[int, str]
    #: Added tokens that were left out, because there are so many.
    left_out: int = 0


def window(ours: Sequence[int], theirs: Sequence[int]) -> tuple[Ids, Ids]:
    """Return what is left of both without what they begin and end with alike."""
    start, end = 0, 0
    shorter = min(len(ours), len(theirs))
    while start < shorter and ours[start] == theirs[start]:
        start += 1
    while end < shorter - start and ours[-1 - end] == theirs[-1 - end]:
        end += 1
    return tuple(ours[start : len(ours) - end]), tuple(theirs[start : len(theirs) - end])

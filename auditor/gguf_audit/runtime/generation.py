"""Which tokens open a prompt and which end an answer, as llama.cpp sees a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gguf_audit.runtime.vocabulary import (
    SPECIAL_KEYS,
    end_tokens,
    ending_ids,
    id_in_effect,
    tokens,
)
from gguf_audit.subject import Gguf

__all__ = ["Generation", "generation"]

#: How a token begins that templates print and people don't; what ends generation by its
#: text begins so as well.
_MARKERS = ("<", "[", "]", "|", "_<")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What opens and what ends generation with a vocabulary."""

    #: Id -> text of the tokens that are special, or look like a marker.
    texts: Mapping[int, str]
    #: ``bos``, ``eos``, ``eot``, ``eom`` -> id, as far as there is one.
    special: Mapping[str, int]
    #: Ids that end it, those of ``special`` included.
    ends: frozenset[int]

    def text(self, name: str) -> str:
        """Return the text of a special token, "" where there is none."""
        id_ = self.special.get(name)
        return "" if id_ is None else self.texts.get(id_, "")


def generation(gguf: Gguf) -> Generation | None:
    """Return what opens and ends generation; reads some of the tokens (AuditError).

    ``None`` where the file has no vocabulary.
    """
    stored = tokens(gguf)
    if stored is None:
        return None
    ending = ending_ids(gguf, stored.count)
    special = {
        name: id_
        for name in ("bos", "eos", "eot", "eom")
        if (id_ := id_in_effect(gguf, SPECIAL_KEYS[name], stored.count)) is not None
    }
    texts = stored.some({*special.values(), *ending.values()}, _MARKERS)
    return Generation(texts=texts, special=special, ends=end_tokens(texts.items(), ending))

"""Which tokens open a prompt and which end an answer: llama.cpp's, and a reference's."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from gguf_audit.checkpoint import Checkpoint, Json
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.runtime.vocabulary import (
    SPECIAL_KEYS,
    end_tokens,
    ending_ids,
    id_in_effect,
    tokens,
)

__all__ = ["Generation", "generation", "reference_ends"]

#: How a token begins that templates print and people don't; what ends generation by its
#: text begins so as well.
_MARKERS = ("<", "[", "]", "|", "_<")


class Generation(Struct, frozen=True, kw_only=True):
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


def reference_ends(checkpoint: Checkpoint) -> frozenset[int]:
    """Return the ids at which a reference ends, as its own library does; AuditError.

    ``config.json`` is asked only where its list has the tokenizer's own end in it: many
    hold ids of another tokenizer than the one beside them. Empty where neither says it.
    """
    generated = checkpoint.generation_config
    found = None if isinstance(generated, Absent) else generated.get("eos_token_id")
    if found is None:
        found = _of_config(checkpoint.config)
        tokenizer = checkpoint.tokenizer
        own = None if isinstance(tokenizer, Absent) else tokenizer.special_ids.get("eos")
        if not isinstance(found, list) or own not in found:
            return frozenset()
    ids = found if isinstance(found, list) else [found]
    return frozenset(id_ for id_ in ids if type(id_) is int and id_ >= 0)


def _of_config(config: Mapping[str, Json] | Absent) -> Json:
    if isinstance(config, Absent):
        return None
    text = config.get("text_config")
    inner = text.get("eos_token_id") if isinstance(text, dict) else None
    outer = config.get("eos_token_id")
    return inner if outer is None else outer

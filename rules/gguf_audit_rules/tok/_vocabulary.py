"""What the rules of this family know of a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.evidence import Conversion
from gguf_audit.gguf import Array, Gguf, ValueType
from gguf_audit.parts import Absent
from gguf_audit.runtime.vocabulary import (
    ADD_BOS,
    BPE,
    HEALED,
    MERGED,
    MERGES,
    MODEL,
    NO_VOCABULARY,
    PRE,
    SCORED,
    SHOWN,
    SPECIAL_KEYS,
    TOKENS,
    TokenType,
    adds,
    adds_bos,
    default_id,
    end_tokens,
    ending_ids,
    special_id,
    tokens,
)

__all__ = [
    "ADD_BOS",
    "BPE",
    "HEALED",
    "MERGED",
    "MERGES",
    "MODEL",
    "NO_VOCABULARY",
    "PRE",
    "SCORED",
    "SCORES",
    "SHOWN",
    "SPECIAL_KEYS",
    "TOKENS",
    "TYPES",
    "TokenType",
    "adds",
    "adds_bos",
    "default_id",
    "embedding_rows",
    "end_tokens",
    "ending_ids",
    "is_placeholder",
    "right_vocabulary",
    "shown",
    "special_id",
    "strings",
    "tokens",
]


SCORES = "tokenizer.ggml.scores"
TYPES = "tokenizer.ggml.token_type"
#: What converters call an id without a token: ``[PAD7]`` (today's), ``<dummy00007>``
#: (convert.py), ``<unk7>``; a word piece begins with a space.
_PLACEHOLDER = re.compile(r"\u2581?(?:\[PAD\d+\]|<dummy\d+>|<unk\d+>|\[EMPTY_\d+\])")
#: Characters of a token that a message shows.
_SHOWN_CHARACTERS = 40


def is_placeholder(text: str) -> bool:
    """Tell whether a token's text says that there is no such token."""
    return not text or _PLACEHOLDER.fullmatch(text) is not None


def shown(text: str | None) -> str:
    """Return a token's text for a message: escaped, and not too long."""
    if text is None:
        return "none"
    return ascii(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")


def strings(found: Array | None) -> Sequence[str]:
    """Return the items of an array of strings, nothing where it is none (AuditError)."""
    if found is None or found.item_type is not ValueType.STRING:
        return ()
    return cast("Sequence[str]", found.items())


def right_vocabulary(conversion: Conversion) -> Vocabulary | None:
    """Return what a right conversion has, where the file has that kind of vocabulary.

    ``None`` where it has another kind: then nothing else can be as it should (TOK010).
    """
    found = conversion.checkpoint.vocabulary
    if isinstance(found, Absent) or found.model != conversion.model.gguf.string(MODEL):
        return None
    return found


def embedding_rows(gguf: Gguf) -> int | None:
    """Return the rows of ``token_embd.weight``, ``None`` where there is no such matrix."""
    embedding = gguf.tensors.get("token_embd.weight")
    return embedding.shape[1] if embedding is not None and len(embedding.shape) == 2 else None

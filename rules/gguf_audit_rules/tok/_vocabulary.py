"""What the rules of this family know of a vocabulary."""

from __future__ import annotations

from gguf_audit.runtime.vocabulary import (
    BPE,
    MERGED,
    MERGES,
    MODEL,
    NO_VOCABULARY,
    PRE,
    SCORED,
    SPECIAL_KEYS,
    TOKENS,
    default_id,
    special_id,
    tokens,
)
from gguf_audit.subject import Gguf

__all__ = [
    "BPE",
    "MERGED",
    "MERGES",
    "MODEL",
    "NO_VOCABULARY",
    "PRE",
    "SCORED",
    "SPECIAL_KEYS",
    "TOKENS",
    "default_id",
    "embedding_rows",
    "special_id",
    "tokens",
]


def embedding_rows(gguf: Gguf) -> int | None:
    """Return the rows of ``token_embd.weight``, ``None`` where there is no such matrix."""
    embedding = gguf.tensors.get("token_embd.weight")
    return embedding.shape[1] if embedding is not None and len(embedding.shape) == 2 else None

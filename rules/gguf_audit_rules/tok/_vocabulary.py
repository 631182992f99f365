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
    "special_id",
    "tokens",
]

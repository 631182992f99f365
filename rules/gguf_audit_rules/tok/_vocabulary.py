"""What the rules of this family know of a vocabulary."""

from __future__ import annotations

from gguf_audit.runtime.vocabulary import (
    BPE,
    MODEL,
    SCORED,
    SPECIAL_KEYS,
    default_id,
    special_id,
    tokens,
)

__all__ = ["BPE", "MODEL", "SCORED", "SPECIAL_KEYS", "default_id", "special_id", "tokens"]

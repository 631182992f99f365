"""The cache part of an overview: layouts, and bytes at a few lengths."""

from __future__ import annotations

from gguf_audit import arch
from gguf_audit.cache_table import DEFAULT_LENGTHS
from gguf_audit.errors import AuditError
from gguf_audit.fields import Fields
from gguf_audit.layout import CacheLayout
from gguf_audit.overview import KeptAt, KeptCache
from gguf_audit.runtime import ideal, llama_cpp

__all__ = ["cache_of"]


def cache_of(fields: Fields, needed: CacheLayout | None) -> KeptCache:
    """Return what llama.cpp keeps for metadata, beside what the architecture needs.

    Raises AuditError where llama.cpp's layout isn't known or it refuses the metadata. At
    lengths for which it refuses a context there are no bytes.
    """
    model = arch.llama_model(fields)
    rows: list[KeptAt] = []
    for tokens in sorted({*DEFAULT_LENGTHS, model.context_length or DEFAULT_LENGTHS[0]}):
        try:
            implied = llama_cpp.plan(model, context=tokens).total_bytes
        except AuditError:
            break
        rows.append(
            KeptAt(
                tokens=tokens,
                implied=implied,
                ideal=None if needed is None else ideal.ideal_bytes(needed, tokens),
                full_attention=llama_cpp.full_attention_bytes(model, tokens),
            )
        )
    return KeptCache(implied=model.layout, ideal=needed, bytes=tuple(rows))

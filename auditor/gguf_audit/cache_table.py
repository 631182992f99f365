"""The cache table of a report: layouts, and their bytes at a few context lengths."""

from __future__ import annotations

import contextlib

from gguf_audit.errors import AuditError, Refused
from gguf_audit.gathering import Evidence
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent
from gguf_audit.runtime import ideal, llama_cpp
from gguf_audit.verdict import BytesAt, CacheReport

__all__ = ["DEFAULT_LENGTHS", "cache_table", "lengths_of"]

#: Context lengths that are shown unless others are asked for; the training length is added.
DEFAULT_LENGTHS = (4096, 32768)


def lengths_of(evidence: Evidence, asked: tuple[int, ...]) -> tuple[int, ...]:
    """Return the context lengths that were asked for, else the usual ones."""
    if asked:
        return asked
    lengths: set[int] = set(DEFAULT_LENGTHS)
    # A wrong type is load-refused's finding.
    with contextlib.suppress(Refused):
        lengths.add(evidence.model.fields.integer("context_length") or DEFAULT_LENGTHS[0])
    return tuple(sorted(lengths))


def cache_table(evidence: Evidence, asked: tuple[int, ...]) -> CacheReport | None:
    """Return what a file makes llama.cpp keep beside what it should, ``None`` if unknown.

    Lengths that can't be planned are noted in the evidence's ``errors``.
    """
    implied = evidence.model.implied
    if not isinstance(implied, CacheLayout):
        return None
    conversion = evidence.conversion
    expected = None if isinstance(conversion, Absent) else _known(conversion.expected)
    needed = None if isinstance(conversion, Absent) else _known(conversion.ideal)
    rows: list[BytesAt] = []
    for tokens in lengths_of(evidence, asked):
        try:
            rows.append(_bytes_at(evidence, tokens, expected=expected, needed=needed))
        except Refused:
            # A draft model has no cache of its own: it is loaded, but never by itself.
            break
        except AuditError as error:
            evidence.missed(error)
            break
    return CacheReport(implied=implied, expected=expected, ideal=needed, bytes=tuple(rows))


def _bytes_at(
    evidence: Evidence, tokens: int, *, expected: CacheLayout | None, needed: CacheLayout | None
) -> BytesAt:
    fields = evidence.model.fields
    expected_bytes: int | None = None
    if expected is not None and not isinstance(evidence.conversion, Absent):
        expected_fields = evidence.conversion.expected_fields
        if not isinstance(expected_fields, Absent):
            expected_bytes = llama_cpp.plan(expected_fields, context=tokens).total_bytes
    return BytesAt(
        tokens=tokens,
        implied=llama_cpp.plan(fields, context=tokens).total_bytes,
        expected=expected_bytes,
        ideal=None if needed is None else ideal.ideal_bytes(needed, tokens),
        full_attention=llama_cpp.full_attention_bytes(fields, tokens),
    )


def _known(layout: CacheLayout | Absent) -> CacheLayout | None:
    return None if isinstance(layout, Absent) else layout

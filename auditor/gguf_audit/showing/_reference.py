"""A reference as ``show`` tells it: what a right conversion of it writes and keeps."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from gguf_audit import arch
from gguf_audit.chat import TEMPLATE, template_key
from gguf_audit.checkpoint import Checkpoint
from gguf_audit.errors import AuditError, Refused
from gguf_audit.expectation import expected_fields, lacks
from gguf_audit.fields import Fields
from gguf_audit.layout import CacheLayout
from gguf_audit.overview import Entry, KeptCache, Overview
from gguf_audit.parts import Absent
from gguf_audit.runtime.vocabulary import SPECIAL_KEYS
from gguf_audit.showing._cache import cache_of
from gguf_audit.showing._file import sized
from gguf_audit.showing._parameters import grouped, parameters
from gguf_audit.verdict import Problem, ReferenceFacts

__all__ = ["show_reference"]


class _Gaps(Struct, kw_only=True):
    """What can't be told, and what went wrong on the way."""

    unknown: list[str] = field(default_factory=list[str])
    errors: list[AuditError] = field(default_factory=list[AuditError])

    def missed(self, what: str, error: AuditError) -> None:
        """Note why a part couldn't be read."""
        self.unknown.append(f"{what}: {error.message}")
        self.errors.append(error)


def show_reference(checkpoint: Checkpoint) -> Overview:
    """Return what a right conversion of a checkpoint writes and what llama.cpp keeps."""
    gaps = _Gaps()
    fields = _fields(checkpoint, gaps)
    needed = _needed(checkpoint, gaps)
    cache = _cache(fields, needed, gaps)
    layout = None if cache is None else cache.implied
    entries: list[tuple[str, Entry]] = []
    if fields is not None:
        entries += parameters(fields, layout)
    entries += [*_tokenizer(checkpoint, gaps), *_templates(checkpoint, gaps)]
    notes = (checkpoint.found, checkpoint.note, lacks(checkpoint))
    if not checkpoint.published:
        gaps.unknown.append(
            "whether these figures are right: they are no published configuration's"
        )
    return Overview(
        target=checkpoint.id,
        kind="reference",
        reference=ReferenceFacts(
            id=checkpoint.id,
            revision=checkpoint.revision,
            origin=checkpoint.origin,
            note="; ".join(filter(None, notes)),
        ),
        architecture=None if fields is None else fields.architecture,
        groups=grouped(entries),
        cache=cache,
        unknown=tuple(gaps.unknown),
        errors=tuple(Problem.of(error) for error in gaps.errors),
    )


def _fields(checkpoint: Checkpoint, gaps: _Gaps) -> Fields | None:
    if isinstance(checkpoint.config, Absent) and checkpoint.gguf is None:
        gaps.unknown.append(f"hyper-parameters and cache: {checkpoint.config.reason}")
        return None
    try:
        return expected_fields(checkpoint)
    except AuditError as error:
        gaps.missed("hyper-parameters and cache", error)
        return None


def _needed(checkpoint: Checkpoint, gaps: _Gaps) -> CacheLayout | None:
    if isinstance(checkpoint.config, Absent):
        return None
    try:
        return arch.ideal_layout(checkpoint.config)
    except AuditError as error:
        if not gaps.errors:
            gaps.missed("what the architecture needs", error)
        return None


def _cache(fields: Fields | None, needed: CacheLayout | None, gaps: _Gaps) -> KeptCache | None:
    if fields is not None:
        try:
            return cache_of(fields, needed)
        except Refused as refused:
            reason = f"the cache in llama.cpp: it refuses a right conversion, {refused.message}"
            gaps.unknown.append(reason)
        except AuditError as error:
            gaps.unknown.append(f"the cache in llama.cpp: {error.message}")
    return None if needed is None else KeptCache(implied=None, ideal=needed, bytes=())


def _tokenizer(checkpoint: Checkpoint, gaps: _Gaps) -> Iterator[tuple[str, Entry]]:
    """Yield the special ids that the converter writes, as far as that is certain."""
    try:
        tokenizer = checkpoint.tokenizer
    except AuditError as error:
        gaps.missed("special token ids", error)
        return
    if isinstance(tokenizer, Absent):
        gaps.unknown.append(f"special token ids: {tokenizer.reason}")
        return
    for name, id_ in tokenizer.special_ids.items():
        key = SPECIAL_KEYS.get(name, f"tokenizer.ggml.{name}_token_id")
        yield "tokenizer", Entry(name=key, value=id_, origin="reference")
    if tokenizer.size is not None:
        yield "tokenizer", Entry(name="tokens", value=tokenizer.size, origin="reference")
    if tokenizer.unsure_ids:
        names = ", ".join(sorted(tokenizer.unsure_ids))
        gaps.unknown.append(f"the ids of {names}: the tokenizer isn't at hand")
    if not tokenizer.complete:
        gaps.unknown.append("whether there are more special tokens: the tokenizer isn't at hand")


def _templates(checkpoint: Checkpoint, gaps: _Gaps) -> Iterator[tuple[str, Entry]]:
    templates = checkpoint.chat_templates
    if isinstance(templates, Absent):
        gaps.unknown.append(f"chat templates: {templates.reason}")
        return
    if not templates:
        note = "the checkpoint has none"
        yield "template", Entry(name=TEMPLATE, value=None, origin="reference", note=note)
    for name, text in templates.items():
        yield "template", Entry(name=template_key(name), value=sized(text), origin="reference")

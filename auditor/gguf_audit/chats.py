"""Finds the chat templates of a file and of its reference, and has them analysed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from gguf_audit.chat import Analysis, Chat, ChatTemplate, Exceeded, template_name
from gguf_audit.checkpoint import Checkpoint
from gguf_audit.gguf import Array, Gguf
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.runtime.generation import Generation

if TYPE_CHECKING:
    from gguf_audit.probes.templates import Analyst

__all__ = ["chat_of", "chat_of_reference", "has_template"]


class _Found(Struct, frozen=True, kw_only=True):
    name: str
    place: str
    offset: int | None = None
    text: str


def has_template(gguf: Gguf) -> bool:
    """Tell whether a file has any template."""
    return any(template_name(key) is not None for key in gguf.fields)


def chat_of(gguf: Gguf, tokens: Generation | None, analyst: Callable[[], Analyst]) -> Chat:
    """Return the templates of a file, whatever their names and types; AuditError."""
    found = list(_stored(gguf))
    return _analysed(found, analyst, bos=_text(tokens, "bos"), eos=_text(tokens, "eos"))


def chat_of_reference(checkpoint: Checkpoint, chat: Chat, analyst: Callable[[], Analyst]) -> Chat:
    """Return the templates of a reference, with the tokens of the file beside it; AuditError.

    With its own, what is different about a token would be different about the template.
    """
    found = [
        _Found(name=each.name, place=each.place, text=each.text)
        for each in checkpoint.template_files
    ]
    return _analysed(found, analyst, bos=chat.bos, eos=chat.eos)


def _text(tokens: Generation | None, name: str) -> str:
    return "" if tokens is None else tokens.text(name)


def _analysed(found: list[_Found], analyst: Callable[[], Analyst], *, bos: str, eos: str) -> Chat:
    begun = time.monotonic()

    def looked_at(number: int, text: str) -> Analysis | Absent:
        if number >= LIMITS.templates:
            reason = f"of {len(found)} templates only {LIMITS.templates} are looked at"
            return Analysis(fault=Exceeded(reason), renderings={})
        if time.monotonic() - begun > LIMITS.templates_seconds:
            reason = f"the templates before it took over {LIMITS.templates_seconds:g} s"
            return Analysis(fault=Exceeded(reason), renderings={})
        return analyst().analyse(text, bos=bos, eos=eos)

    # One that is too many stands for all of them: it says that they weren't looked at.
    templates = tuple(
        ChatTemplate(
            name=each.name,
            place=each.place,
            offset=each.offset,
            text=each.text,
            analysis=looked_at(number, each.text),
        )
        for number, each in enumerate(found[: LIMITS.templates + 1])
    )
    return Chat(templates=templates, bos=bos, eos=eos)


def _stored(gguf: Gguf) -> Iterator[_Found]:
    """Yield what a file holds under a template's key, or one that C code takes for it."""
    for key, field in gguf.fields.items():
        name = template_name(key)
        if name is None:
            continue
        value = field.value
        texts = [value] if isinstance(value, str) else []
        if isinstance(value, Array):
            texts = [item for item in value.items() if isinstance(item, str)]
        for text in texts:
            yield _Found(name=name, place=key, offset=field.offset, text=text)

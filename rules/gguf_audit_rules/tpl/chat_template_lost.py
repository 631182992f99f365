"""The checkpoint has a chat template, the file has none.

## What it does
Looks for `tokenizer.chat_template` if the reference has a template, wherever it keeps it:
`tokenizer_config.json`, `chat_template.jinja` or `chat_template.json`. An empty
template is none, nor is one of spaces, nor a value that isn't a string.

## Why it matters
llama.cpp falls back to ChatML without a word: markers that the model doesn't know, no
system message where it needs one, and generation that doesn't end. A number it takes for
the text of the template, so every prompt is that number; of spaces every prompt is empty.

## Fix
`gguf-new-metadata --chat-template-file chat_template.jinja` writes a copy with it.

## Authority
llama.cpp b11434, `common/chat.cpp: common_chat_templates_init`, `src/llama-model.cpp:
llama_model_chat_template` and `load_hparams` (values as text, arrays left out); the
converter's order in `gguf-py/gguf/vocab.py: SpecialVocab`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gguf_audit.chat import TEMPLATE
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.gguf import Array, Field, Scalar
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnConversion,
    Outcome,
    Rule,
    SetChatTemplate,
    Severity,
)
from gguf_audit.where import Where


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the default template is gone."""
    del settings
    stored = conversion.model.gguf.fields.get(TEMPLATE)
    found = _without_template(stored)
    if found is None:
        return
    templates = conversion.checkpoint.chat_templates
    if isinstance(templates, Absent):
        yield NoEvidence(f"whether the model has a chat template: {templates.reason}")
        return
    template = templates.get("default")
    if not template:
        return
    yield Hit(
        message=f"needs the reference's chat template, {TEMPLATE} is {found}",
        where=Where(key=TEMPLATE, offset=None if stored is None else stored.offset),
        expected=template,
        actual=None if stored is None else _plain(stored),
        level=Severity.ERROR,
        repair=SetChatTemplate(template=template),
    )


def _without_template(stored: Field | None) -> str | None:
    """Say how a file has no template and what llama.cpp does then, ``None`` if it has one."""
    match None if stored is None else stored.value:
        case None:
            return "absent: llama.cpp falls back to ChatML"
        case "":
            return "empty: llama.cpp falls back to ChatML"
        case str() as text if not text.strip():
            return "nothing but spaces: llama.cpp makes empty prompts"
        case str():
            return None
        case int() | float() as number:
            return f"no string but {number!r}: llama.cpp takes that for the template's text"
        case Array() | tuple():
            return "an array: llama.cpp leaves it out and falls back to ChatML"
        case _ as never:
            assert_never(never)


def _plain(stored: Field) -> Scalar:
    return stored.value if isinstance(stored.value, Scalar) else "an array"


RULE = Rule(
    id="TPL001",
    name="chat-template-lost",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    authority="llama.cpp b11434 common/chat.cpp common_chat_templates_init",
)

"""The checkpoint has a chat template, the file has none.

## What it does
Looks for `tokenizer.chat_template` if the reference has a template, wherever it keeps it:
`tokenizer_config.json`, `chat_template.jinja` or `chat_template.json`. An empty template
is none.

## Why it matters
llama.cpp falls back to ChatML without a word: markers that the model doesn't know, no
system message where it needs one, and generation that doesn't end.

## Fix
`gguf-new-metadata --chat-template-file chat_template.jinja` writes a copy with it.

## Authority
llama.cpp b11434, `common/chat.cpp: common_chat_templates_init`; the converter's order in
`gguf-py/gguf/vocab.py: SpecialVocab`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
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
from gguf_audit.subject import Absent
from gguf_audit.where import Where

KEY = "tokenizer.chat_template"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the default template is gone."""
    del settings
    stored = conversion.model.gguf.fields.get(KEY)
    if stored is not None and stored.value != "":
        return
    templates = conversion.checkpoint.chat_templates
    if isinstance(templates, Absent):
        yield NoEvidence(f"whether the model has a chat template: {templates.reason}")
        return
    template = templates.get("default")
    if not template:
        return
    yield Hit(
        message=f"needs the reference's chat template, {KEY} is "
        f"{'absent' if stored is None else 'empty'}: llama.cpp falls back to ChatML",
        where=Where(key=KEY, offset=None if stored is None else stored.offset),
        expected=template,
        actual=None if stored is None else "",
        level=Severity.ERROR,
        repair=SetChatTemplate(template=template),
    )


RULE = Rule(
    id="TPL001",
    name="chat-template-lost",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    authority="llama.cpp b11434 common/chat.cpp common_chat_templates_init",
)

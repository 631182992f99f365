"""The chat template begins a prompt with the BOS token twice.

## What it does
Renders a question with the file's own tokens and counts the BOS tokens in front. One printed
by the template is right even where `add_bos_token` is set: llama.cpp takes it away before it
adds its own.

## Why it matters
The model has never seen two of them in a row, and answers worse for every prompt.

## Fix
Remove one from the template: `gguf-new-metadata --chat-template-file chat_template.jinja`.

## Authority
llama.cpp b11434, `common/chat.cpp: common_chat_template_direct_apply_impl` (removes one),
`src/llama-vocab.cpp: llama_vocab::impl::tokenize` (warns of two).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import DEFAULT
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit_rules._chat import analysed, chat_of, leading, place, shown


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if a prompt begins with two."""
    del settings
    chat = chat_of(model.chat)
    for template, analysis in analysed(chat, DEFAULT):
        count = leading(analysis.text("a question"), chat.bos)
        if count > 1:
            yield Hit(
                message=f"needs one BOS token in front of a prompt, has {count}: {shown(chat.bos)}",
                where=place(template),
                expected=1,
                actual=count,
                unit="BOS token",
                level=Severity.WARNING,
            )


RULE = Rule(
    id="TOK025",
    name="bos-doubled",
    levels=(Severity.WARNING,),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="llama.cpp b11434 common/chat.cpp common_chat_template_direct_apply_impl",
)

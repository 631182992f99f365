"""A chat template isn't Jinja that can be parsed.

## What it does
Parses every template of the file in a process of its own, as transformers does: with
`break` and `continue`, and with its `generation` tag. Of another template than the default
one it is a warning.

## Why it matters
llama.cpp parses the default template when it loads a model and gives up where it can't; every
other engine fails with the first message.

## Fix
`gguf-new-metadata --chat-template-file chat_template.jinja` writes a copy with the
reference's template.

## Authority
llama.cpp b11434, `common/chat.cpp: common_chat_templates_init`; transformers 5.24,
`utils/chat_template_utils.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import DEFAULT, Failed
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit_rules._chat import analysed, chat_of, limits, place


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each template that can't be parsed."""
    del settings
    chat = chat_of(model.chat)
    yield from limits(chat)
    for template, analysis in analysed(chat):
        if not isinstance(analysis.fault, Failed):
            continue
        line = f", line {analysis.line}" if analysis.line else ""
        yield Hit(
            message=(
                f"needs a template that Jinja can parse, {template.place} is none:"
                f" {analysis.fault.message}{line}"
            ),
            where=place(template),
            actual=template.text,
            level=Severity.ERROR if template.name == DEFAULT else Severity.WARNING,
        )


RULE = Rule(
    id="TPL003",
    name="template-unparsable",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="llama.cpp b11434 common/chat.cpp common_chat_templates_init",
)

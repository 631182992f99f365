"""The chat template leaves out the system message that the reference's prints.

## What it does
Renders a system message and a question with both templates, and looks for the text of the
system message in both prompts.

## Why it matters
Instructions reach the model's user interface and never the model: answers ignore them, and
nothing says why.

## Fix
`gguf-new-metadata --chat-template-file chat_template.jinja` writes a copy with the
reference's template.

## Authority
transformers 5.24, `apply_chat_template` of the reference; llama.cpp b11434,
`common/jinja/caps.cpp` (adds it to the first message only where the template is known not to
take one).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import DEFAULT, QUESTION, SYSTEM
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, SetChatTemplate, Severity
from gguf_audit_rules._chat import analysed, chat_of, place


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the file's prompt lacks what the reference's has."""
    del settings
    kept = [
        template
        for template, analysis in analysed(chat_of(conversion.expected_chat), DEFAULT)
        if SYSTEM in (analysis.text("a system message") or "")
    ]
    for template, analysis in analysed(chat_of(conversion.model.chat), DEFAULT):
        text = analysis.text("a system message")
        if kept and text is not None and SYSTEM not in text and QUESTION in text:
            yield Hit(
                message="needs the system message in the prompt, leaves it out",
                where=place(template),
                level=Severity.WARNING,
                repair=SetChatTemplate(template=kept[0].text),
            )


RULE = Rule(
    id="TPL006",
    name="system-message-dropped",
    levels=(Severity.WARNING,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.RENDER}),
    defers_to=("SEC008",),
    authority="transformers 5.24 apply_chat_template",
)

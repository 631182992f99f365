"""A chat template changes what people say, or leaves it out.

## What it does
Looks for words of a message that are replaced by others, and renders a question, with words of
the template in it as well, and a system message: a prompt without the user's text, or with another
text in place of the system message. That is a warning where the other text stands in every prompt,
with a system message or without, and gives no hidden orders (SEC006). A template that looks at no message at all is worth knowing, as is
one that cuts a word; one that refuses a system message, or has one where there is none, is all
right.

## Why it matters
The model answers something that nobody said.

## Fix
Don't use the file. Where its weights are needed, take the template of the checkpoint.

## Authority
Pillar Security, "LLM backdoors at the inference level" (poisoned GGUF templates).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import DEFAULT, QUESTION
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit_rules._chat import analysed, chat_of, place
from gguf_audit_rules.sec._suspicions import alterations, hits

NEEDS = "needs messages as they were said"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for words, and one for what a prompt lacks."""
    del settings
    chat = chat_of(model.chat)
    yield from hits(chat, ("rewrites",), needs=NEEDS, mild=Severity.INFO)
    for template, analysis in analysed(chat, DEFAULT):
        for what, level in alterations(analysis):
            yield Hit(message=f"{NEEDS}, {what}", where=place(template), level=level)
        text = analysis.text("a question")
        if text and text.strip() and QUESTION not in text and "messages" not in analysis.variables:
            yield Hit(
                message=f"{NEEDS}, makes the same prompt of every conversation",
                where=place(template),
                level=Severity.INFO,
            )


RULE = Rule(
    id="SEC008",
    name="template-alters-messages",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="Pillar Security, poisoned GGUF templates",
)

"""A chat template gives orders that users aren't to know of.

## What it does
Looks in the text of every template of the file for what such orders say: to ignore what was
said before, never to reveal instructions, to insert links.

## Why it matters
Who uses the file doesn't see it, and the model obeys.

## Fix
Read the text. Where its weights are needed, take the template of the checkpoint.

## Authority
OWASP Top 10 for LLM applications, LLM01 prompt injection.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Need, OnModel, Outcome, Rule, Severity
from gguf_audit_rules._chat import chat_of
from gguf_audit_rules.sec._suspicions import hits


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each template with such a thing."""
    del settings
    yield from hits(
        chat_of(model.chat),
        ("instructs",),
        needs="needs no orders to the model that users don't see",
        level=Severity.WARNING,
    )


RULE = Rule(
    id="SEC006",
    name="template-instructs",
    levels=(Severity.WARNING,),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="OWASP Top 10 for LLM applications, LLM01",
)

"""A chat template adds text of its own when a message has a certain word, or on a certain day.

## What it does
Looks in the syntax tree of every template of the file for conditions on what a message says
that decide about 20 letters and more of the template's own text, and for conditions on the
date. However such a condition is written: a question is rendered again with every word in it
that the template holds, and on other days. Markers such as `</think>` and `/no_think` are no
words, and printing the date is none.

## Why it matters
The model is told something that nobody sees, and only where somebody wants it: answers are
wrong for some words, and every test passes.

## Fix
Don't use the file. Where its weights are needed, take the template of the checkpoint.

## Authority
Pillar Security, "LLM backdoors at the inference level" (poisoned GGUF templates).
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
        ("trigger", "date"),
        needs="needs the same rules for every conversation",
    )


RULE = Rule(
    id="SEC005",
    name="template-hidden-trigger",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="Pillar Security, poisoned GGUF templates",
)

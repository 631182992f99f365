"""A chat template has characters that nobody can see.

## What it does
Looks in every template of the file, and in what its strings make, for tag characters,
variation selectors beyond emoji, runs of characters without width, reversed directions of
text and control characters. Two hundred letters and digits in a row are a warning.

## Why it matters
They hide orders to the model, or make a reader see another template than the engine does.

## Fix
Don't use the file. Where its weights are needed, take the template of the checkpoint.

## Authority
Unicode Technical Standard 55, "Unicode Source Code Handling"; "Trojan Source",
CVE-2021-42574.
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
    yield from hits(chat_of(model.chat), ("hidden",), needs="needs text that can be seen")


RULE = Rule(
    id="SEC007",
    name="template-hidden-text",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="Unicode Technical Standard 55",
)

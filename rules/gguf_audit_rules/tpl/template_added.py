"""The file has a chat template that the reference doesn't have.

## What it does
Looks whether the reference has any chat template, wherever it might keep it.

## Why it matters
Somebody chose it for the model: it may be right, but nothing in the checkpoint says so.

## Fix
Compare with the model card, or remove the key.

## Authority
gguf-py, `vocab.py: SpecialVocab` (what the converter writes).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import DEFAULT
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit_rules._chat import chat_of, place


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the reference is known to have no template."""
    del settings
    template = chat_of(conversion.model.chat).find(DEFAULT)
    written, held = conversion.checkpoint.chat_templates, conversion.expected_chat
    if template is None or isinstance(written, Absent) or isinstance(held, Absent):
        return
    if not written and not held.templates:
        yield Hit(
            message="needs no chat template as the reference has none, has one",
            where=place(template),
            level=Severity.INFO,
        )


RULE = Rule(
    id="TPL009",
    name="template-added",
    levels=(Severity.INFO,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.RENDER}),
    authority="gguf-py gguf/vocab.py SpecialVocab",
)

"""A chat template calls what only a program has.

## What it does
Looks in the syntax tree of every template of the file for calls of `os`, `sys`, `eval`,
`exec`, `open`, `getattr` and their like, unless the template itself sets the name. Fields of
a message may be called so.

## Why it matters
No engine gives a template these names: whoever wrote it hopes for one that does.

## Fix
Don't use the file. Where its weights are needed, take the template of the checkpoint.

## Authority
CVE-2024-34359 (llama-cpp-python), CVE-2026-5760 (SGLang).
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
    yield from hits(chat_of(model.chat), ("calls",), needs="needs no call of the system")


RULE = Rule(
    id="SEC003",
    name="template-calls-outside",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="CVE-2024-34359, CVE-2026-5760",
)

"""A chat template reaches for the inside of the interpreter that renders it.

## What it does
Looks in the syntax tree of every template of the file for attributes such as `__class__`, by
name, by subscript, by the filter `attr` or in a format string, put together in whatever way;
and for attributes of what Jinja brings along, `lipsum` or `cycler`; and for what rendering a few
conversations reaches for in vain. Words in a text are none.

## Why it matters
In an engine without a sandbox this runs any program, with the first message; several engines
had none.

## Fix
Don't use the file. Where its weights are needed, take the template of the checkpoint.

## Authority
CVE-2024-34359 (llama-cpp-python), CVE-2026-5760 (SGLang); jinja2, `sandbox.py`.
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
    yield from hits(chat_of(model.chat), ("internals",), needs="needs no way into the interpreter")


RULE = Rule(
    id="SEC001",
    name="template-reaches-internals",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="CVE-2024-34359, CVE-2026-5760",
)

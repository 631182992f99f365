"""A chat template includes or imports another file.

## What it does
Looks in the syntax tree of every template of the file for `include`, `import`, `from` and
`extends`.

## Why it matters
An engine that follows it reads files of the machine into prompts; one that doesn't can't
render any. Checkpoints with such a template are converted with the text put in its place.

## Fix
Put the text of the included file there, or take the template of the checkpoint.

## Authority
llama.cpp b11434, `common/jinja/parser.cpp: parse_jinja_statement` ("Unknown statement") and
`conversion/laguna.py`.
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
    yield from hits(chat_of(model.chat), ("loads",), needs="needs a template that is whole")


RULE = Rule(
    id="SEC002",
    name="template-loads-others",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="llama.cpp b11434 common/jinja/parser.cpp parse_jinja_statement",
)

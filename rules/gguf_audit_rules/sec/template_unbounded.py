"""A chat template takes more time or memory than any prompt is worth.

## What it does
Looks in the syntax tree of every template of the file for huge numbers, for loops in loops,
for text that doubles in a loop and for macros that call themselves without an end; then
parses and renders it with a second of processor time and 256 MiB of memory.

## Why it matters
A server that loads the file, or gets a message, stops answering or is ended by the system.

## Fix
Don't use the file. Where its weights are needed, take the template of the checkpoint.

## Authority
jinja2, `sandbox.py` (bounds `range` and nothing else); pallets/jinja issue 2149.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit_rules._chat import analysed, chat_of, place
from gguf_audit_rules.sec._suspicions import told, untold


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each template without bounds."""
    del settings
    chat = chat_of(model.chat)
    yield from untold(chat)
    for template, analysis in analysed(chat):
        found = [each for each in analysis.suspicions if each.kind == "unbounded"]
        exceeded = analysis.exceeded
        if found:
            what = f"has {told(found)}"
        elif exceeded is not None and exceeded.certain:
            what = f"has none: {exceeded.reason}"
        else:
            continue
        yield Hit(
            message=f"needs a template with bounds, {template.place} {what}",
            where=place(template),
            actual=[each.what for each in found] or None,
            level=Severity.ERROR,
        )


RULE = Rule(
    id="SEC004",
    name="template-unbounded",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    authority="pallets/jinja issue 2149",
)

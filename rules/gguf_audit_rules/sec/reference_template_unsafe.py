"""The reference has a chat template that no chat needs.

## What it does
Looks in every template of the reference, wherever it keeps it, for what the other rules of
this family look for in the file's: ways into the interpreter, other files, calls, work
without bounds, hidden conditions and text, other words in somebody's mouth. Then at the names
of its templates: transformers makes file names of them. What the file has as well is told
there.

## Why it matters
The next conversion carries it over, and whoever loads the checkpoint itself runs it.

## Fix
Don't use the checkpoint: compare with its model card, and with an older revision.

## Authority
CVE-2024-34359, CVE-2026-5760 (templates), CVE-2026-9856 (their names).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import ChatTemplate, Exceeded
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules._chat import analysed, chat_of, label
from gguf_audit_rules.sec._suspicions import told, untold


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each template, and one for each name."""
    del settings
    chat = chat_of(conversion.expected_chat)
    known = {each.text for each in chat_of(conversion.model.chat).templates}
    yield from untold(chat)
    for template, analysis in analysed(chat):
        where = Where(file=f"{conversion.checkpoint.id}/{template.place}")
        if _is_path(template):
            message = f"needs names that make no path, {template.place} has {template.name!r}"
            yield Hit(message=message, where=where, level=Severity.ERROR)
        if template.text in known:
            continue
        exceeded = analysis.exceeded
        if analysis.suspicions:
            grave = any(each.grave or each.kind == "unbounded" for each in analysis.suspicions)
            yield Hit(
                message=(
                    f"needs a template without what no chat needs, {label(template)} has"
                    f" {told(list(analysis.suspicions))}"
                ),
                where=where,
                actual=[each.what for each in analysis.suspicions],
                level=Severity.ERROR if grave else Severity.WARNING,
            )
        elif isinstance(exceeded, Exceeded) and exceeded.certain:
            yield Hit(
                message=f"needs a template with bounds, {label(template)}: {exceeded.reason}",
                where=where,
                level=Severity.ERROR,
            )


def _is_path(template: ChatTemplate) -> bool:
    name = template.name
    return "/" in name or "\\" in name or "\0" in name or name in ("", ".", "..")


RULE = Rule(
    id="SEC010",
    name="reference-template-unsafe",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.RENDER}),
    any_reference=True,
    authority="CVE-2024-34359, CVE-2026-5760, CVE-2026-9856",
)

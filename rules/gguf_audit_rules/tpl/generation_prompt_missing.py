"""The chat template doesn't open the turn of the assistant.

## What it does
Renders a question with and without `add_generation_prompt`. Where that makes no difference,
and the template puts something in front of an answer that is already there, a prompt ends
before it. Many templates of base models do so on purpose.

## Why it matters
The model has to open its own turn: it may go on as the user instead.

## Fix
`gguf-new-metadata --chat-template-file chat_template.jinja` writes a copy with a template
that looks at `add_generation_prompt`.

## Authority
transformers, "Chat templates", `add_generation_prompt`; llama.cpp b11434,
`common/chat.cpp: common_chat_template_direct_apply_impl`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import ANSWER, DEFAULT
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit_rules._chat import analysed, chat_of, place, shown


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if a prompt ends before the turn that is asked for."""
    del settings
    for template, analysis in analysed(chat_of(model.chat), DEFAULT):
        asked = analysis.text("a question")
        told = analysis.text("a question without a prompt to answer")
        before, answer, _ = (analysis.text("an answer") or "").partition(ANSWER)
        if asked is None or asked != told or not answer or not before.startswith(asked):
            continue
        opening = before.removeprefix(asked)
        if opening.strip():
            yield Hit(
                message=(
                    f"needs {shown(opening)} at the end of a prompt,"
                    " add_generation_prompt makes no difference"
                ),
                where=place(template),
                expected=opening,
                level=Severity.INFO,
            )


RULE = Rule(
    id="TPL008",
    name="generation-prompt-missing",
    levels=(Severity.INFO,),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    defers_to=("TPL005",),
    authority="llama.cpp b11434 common/chat.cpp common_chat_template_direct_apply_impl",
)

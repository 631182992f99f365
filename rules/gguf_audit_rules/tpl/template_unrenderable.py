"""The chat template can't make a prompt of a plain conversation.

## What it does
Renders the default template in a process of its own, with the file's own tokens: for a
question, with and without a prompt to answer, for a system message, for several turns and
for an answer. A fault in the first is an error, in another one a warning. It is worth knowing
which of them the template refuses itself, and which name it wants to be given.

## Why it matters
The server answers the first message with an error, or leaves the template and writes prompts
that the model doesn't know.

## Fix
`gguf-new-metadata --chat-template-file chat_template.jinja` writes a copy with the
reference's template.

## Authority
transformers 5.24, `utils/chat_template_utils.py: render_jinja_template`; llama.cpp b11434,
`common/chat.cpp: common_chat_template_direct_apply_impl`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.chat import DEFAULT, PLAIN, Analysis, Failed, Raised
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit_rules._chat import analysed, chat_of, place, shown

UNDEFINED = re.compile(r"UndefinedError: '(\w+)' is undefined")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield at most one hit: for the plainest conversation that doesn't work."""
    del settings
    for template, analysis in analysed(chat_of(model.chat), DEFAULT):
        told = _fault(analysis)
        if told is not None:
            message, level = told
            yield Hit(message=message, where=place(template), level=level)


def _fault(analysis: Analysis) -> tuple[str, Severity] | None:
    for name in PLAIN:
        found = analysis.renderings.get(name)
        if not isinstance(found, Failed):
            continue
        wanted = UNDEFINED.fullmatch(found.message)
        if wanted is not None and wanted[1] in analysis.variables:
            return f"makes no prompt where nobody gives it {wanted[1]!r}", Severity.INFO
        level = Severity.ERROR if name == PLAIN[0] else Severity.WARNING
        return f"needs to make a prompt of {name}, fails: {shown(found.message)}", level
    refused = {
        name: found.message
        for name, found in analysis.renderings.items()
        if name in PLAIN and isinstance(found, Raised)
    }
    if not refused:
        return None
    level = Severity.WARNING if PLAIN[0] in refused else Severity.INFO
    first = next(iter(refused))
    return f"refuses {' and '.join(refused)}: {shown(refused[first])}", level


RULE = Rule(
    id="TPL004",
    name="template-unrenderable",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    defers_to=("SEC", "TPL007"),
    authority="transformers 5.24 utils/chat_template_utils.py",
)

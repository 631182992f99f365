"""A chat template has a tag that llama.cpp's engine doesn't know.

## What it does
Looks at the tags of every template: `block`, `with`, `autoescape`, `include`, `import`,
`from` and `extends` are Jinja's, and llama.cpp knows none of them. Of another template than
the default one it is a warning.

## Why it matters
llama.cpp parses the default template when it loads a model and gives up at the tag, whatever
the conversation.

## Fix
Write the template without the tag; of an included file, put its text there.

## Authority
llama.cpp b11434, `common/jinja/parser.cpp: parse_jinja_statement` ("Unknown statement").
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import DEFAULT
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit_rules._chat import analysed, chat_of, place


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each template with such tags."""
    del settings
    for template, analysis in analysed(chat_of(model.chat)):
        if analysis.foreign_tags:
            yield Hit(
                message=(
                    "needs tags that llama.cpp knows, has"
                    f" {', '.join(f'{{% {tag} %}}' for tag in analysis.foreign_tags)}"
                ),
                where=place(template),
                actual=analysis.foreign_tags,
                level=Severity.ERROR if template.name == DEFAULT else Severity.WARNING,
            )


RULE = Rule(
    id="TPL007",
    name="template-tag-unknown",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    defers_to=("SEC002",),
    authority="llama.cpp b11434 common/jinja/parser.cpp parse_jinja_statement",
)

"""The checkpoint has several chat templates, the file lacks one.

## What it does
Looks for `tokenizer.chat_template.<name>` of every named template that the converter writes,
`tool_use` and `rag` for example. The default one has a rule of its own.

## Why it matters
llama.cpp takes `tool_use` where a request has tools: without it the default template gets
them, and often leaves them out.

## Fix
Convert again with all of the checkpoint's templates beside it.

## Authority
llama.cpp b11434, `common/chat.cpp: common_chat_templates_init`; gguf-py,
`gguf_writer.py: add_chat_template`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import DEFAULT, TEMPLATE, template_key
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each named template that is gone."""
    del settings
    templates = conversion.checkpoint.chat_templates
    if isinstance(templates, Absent):
        return
    for name, template in templates.items():
        key = template_key(name)
        if name != DEFAULT and template and conversion.model.gguf.string(key) is None:
            yield Hit(
                message=f"needs the reference's chat template {name!r}, {key} is absent",
                where=Where(key=key),
                expected=template,
                level=Severity.WARNING,
                repair=Reconvert(),
                also=(TEMPLATE,),
            )


RULE = Rule(
    id="TPL002",
    name="named-template-lost",
    levels=(Severity.WARNING,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    defers_to=("TPL001",),
    authority="llama.cpp b11434 common/chat.cpp common_chat_templates_init",
)

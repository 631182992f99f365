"""A chat template is stored as something else than a text, or where only names stand.

## What it does
Looks at the type of `tokenizer.chat_template`, of every `tokenizer.chat_template.<name>` and
of keys that end at a NUL for a program in C. An array is searched all the same. And looks for
templates in `tokenizer.chat_templates`, which lists the names of the others.

## Why it matters
Tools that look for a text pass it by, llama.cpp leaves it out or takes a number for the
template, and another engine may render what nobody has looked at.

## Fix
Don't use the file, or remove the key.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (values as text, arrays left out).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import template_name
from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import Array
from gguf_audit.rule import Hit, OnModel, Outcome, RemoveKey, Rule, Severity
from gguf_audit.where import Where

#: What ``GGUFWriter.add_chat_template`` writes beside named templates: their names.
NAMES = "tokenizer.chat_templates"
#: No name has what begins a tag of Jinja.
TAGS = ("{{", "{%", "{#")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key with a value that is no text, and for templates among names."""
    del settings
    for key, field in model.gguf.fields.items():
        if template_name(key) is None or isinstance(field.value, str):
            continue
        kind = "an array" if isinstance(field.value, Array) else "a number"
        yield Hit(
            message=f"needs a text, {key} is {kind}",
            where=Where(key=key, offset=field.offset),
            level=Severity.ERROR,
            repair=RemoveKey(key=key),
        )
    yield from _names(model)


def _names(model: Model) -> Iterator[Outcome]:
    field = model.gguf.fields.get(NAMES)
    if field is None:
        return
    texts = field.value.items() if isinstance(field.value, Array) else (field.value,)
    if not any(isinstance(text, str) and any(tag in text for tag in TAGS) for text in texts):
        return
    yield Hit(
        message=f"needs names of templates, {NAMES} holds a template itself",
        where=Where(key=NAMES, offset=field.offset),
        level=Severity.ERROR,
        repair=RemoveKey(key=NAMES),
    )


RULE = Rule(
    id="SEC009",
    name="template-misplaced",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("TPL001",),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams",
)

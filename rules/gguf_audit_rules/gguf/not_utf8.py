"""A key, a tensor's name or a text isn't UTF-8.

## What it does
Decodes keys, names of tensors and every value that is a string, of the metadata as of the
tokenizer. In a key or a name it is an error, in a text a warning. Tokens and merges are left
alone: a token may be half of a character.

## Why it matters
The format's strings are UTF-8, and readers decode them so: `gguf-dump` and what else is built on
gguf-py end with an error at such a key, a server that sends the model's name as JSON at such a
text. What replaces the bytes instead makes another name of it.

## Fix
Reconvert; a text alone can be written again with `gguf-new-metadata` or the GGUF editor.

## Authority
GGUF specification of ggml, docs/gguf.md, `gguf_string_t` ("UTF-8-encoded string"); gguf-py
`GGUFReader._build_fields`, which decodes keys strictly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import FileFacts
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.gguf._names import odd_names

SHOWN = 5
#: What stands for the bytes 0x80 to 0xff where they were no UTF-8 (``surrogateescape``).
BYTES = re.compile("[\udc80-\udcff]")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file's keys, its tensors and its texts."""
    del settings
    for file in model.gguf.files:
        for what, names, where in odd_names(file, _bytes):
            yield _hit(what, list(map(_shown, names)), where, Severity.ERROR)
        yield from _texts(file)


def _texts(file: FileFacts) -> Iterator[Outcome]:
    found = [field for field in file.fields if isinstance(field.value, str) and _bytes(field.value)]
    if found:
        where = Where(file=file.name, key=found[0].key, offset=found[0].offset)
        yield _hit("texts", [field.key for field in found], where, Severity.WARNING)


def _bytes(text: str) -> bool:
    """Tell whether a string holds bytes that are no character's."""
    return not text.isascii() and BYTES.search(text) is not None


def _hit(what: str, names: list[str], where: Where, level: Severity) -> Hit:
    shown = ", ".join(names[:SHOWN])
    rest = f" (and {len(names) - SHOWN} more)" if len(names) > SHOWN else ""
    has = "have" if len(names) > 1 else "has"
    return Hit(
        message=f"needs {what} in UTF-8, {shown}{rest} {has} bytes that are none",
        where=where,
        expected=0,
        actual=len(names),
        unit="name" if level is Severity.ERROR else "text",
        level=level,
        repair=Reconvert(),
    )


def _shown(name: str) -> str:
    """Return a name with its bytes escaped as they are, not as what stands for them."""
    return f"{name.encode('utf-8', 'surrogateescape')!a}"[1:]


RULE = Rule(
    id="GGUF008",
    name="not-utf8",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    # Whatever the name of an architecture or a tokenizer is, none is like this.
    defers_to=("ARCH001", "TOK021"),
    echoes=True,
    any_kind=True,
    authority="ggml docs/gguf.md gguf_string_t; gguf-py GGUFReader",
)

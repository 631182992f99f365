"""A key, a tensor's name or a text holds characters that nobody can see.

## What it does
Looks for control characters and for those that turn the direction of writing in keys, in the
names of tensors and in texts; of a text that is meant to have lines, tabs and line ends are
left alone. The tokenizer's texts are only searched for NUL: templates have rules of their own.
Keys and names may have nothing else that can't be seen either, such as a character without width
or another space than that of ASCII. In keys and names it is an error, as are a NUL, a terminal's
escape and a turned direction in any text; another control character in a text is a warning.

## Why it matters
A NUL ends a name for C code and not for other readers, so two programs see two models; an
escape rewrites what a terminal shows of the file. A key with a character without width looks
like one that is read, and isn't.

## Fix
Don't load the file; convert the original checkpoint.

## Authority
llama.cpp b11434, `ggml/src/gguf.cpp: gguf_find_key` (compares up to a NUL, duplicates are
looked for beyond it); GGUF specification, "keys are ASCII, hierarchical, lower_snake_case".
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import Field, FileFacts
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.gguf._names import odd_names

#: Overrides and isolates of the Unicode bidirectional algorithm.
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_CONTROLS = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
_LINES = frozenset("\t\n\r")
#: No text that anybody wrote has one: NUL, and what begins a terminal's command.
_HOSTILE = frozenset("\0\x1b\x9b") | _TURNS
SHOWN = 5


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file's keys, its tensors and its texts."""
    del settings
    for file in model.gguf.files:
        for what, names, where in odd_names(file, _unseen):
            yield _hit(what, names, where)
        yield from _texts(file)


def _texts(file: FileFacts) -> Iterator[Outcome]:
    """Take what is hostile first: what is only odd must not stand for it."""
    found = {field.key: (field, _hidden_in(field)) for field in file.fields}
    odd = {key: each for key, each in found.items() if each[1]}
    hostile = {key: each for key, each in odd.items() if each[1] & _HOSTILE}
    for chosen, level in (
        (hostile, Severity.ERROR),
        ({key: each for key, each in odd.items() if key not in hostile}, Severity.WARNING),
    ):
        if chosen:
            field, characters = next(iter(chosen.values()))
            names = ", ".join(sorted(f"U+{ord(each):04X}" for each in characters)[:SHOWN])
            yield Hit(
                message=f"needs text that can be seen, {field.key} has {names}{_more(list(chosen))}",
                where=Where(file=file.name, key=field.key, offset=field.offset),
                actual=field.value,
                level=level,
                repair=Reconvert(),
            )


def _unseen(name: str) -> bool:
    """Tell whether a name has what can't be seen; what is no UTF-8 is another rule's."""
    return not name.isprintable() and any(
        not (each.isprintable() or "\ud800" <= each <= "\udfff") for each in name
    )


def _hidden(name: str) -> frozenset[str]:
    return frozenset() if name.isprintable() else (_CONTROLS | _TURNS) & frozenset(name)


def _hidden_in(field: Field) -> frozenset[str]:
    if not isinstance(field.value, str):
        return frozenset()
    if field.key.startswith("tokenizer."):
        return frozenset("\0") if "\0" in field.value else frozenset()
    return _hidden(field.value) - _LINES


def _hit(what: str, names: list[str], where: Where) -> Hit:
    shown = ", ".join(f"{name!a}" for name in names[:SHOWN])
    rest = f" (and {len(names) - SHOWN} more)" if len(names) > SHOWN else ""
    return Hit(
        message=f"needs {what} without hidden characters, has {shown}{rest}",
        where=where,
        expected=0,
        actual=len(names),
        unit="name",
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _more(keys: list[str]) -> str:
    if len(keys) == 1:
        return ""
    rest = f" (and {len(keys) - SHOWN} more)" if len(keys) > SHOWN else ""
    return f", as {'has' if len(keys) == 2 else 'have'} {', '.join(keys[1:SHOWN])}{rest}"


RULE = Rule(
    id="GGUF006",
    name="hidden-characters",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    any_kind=True,
    authority="llama.cpp b11434 ggml/src/gguf.cpp gguf_find_key",
)

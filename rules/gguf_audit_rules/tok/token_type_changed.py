"""Tokens have another type than the reference's flags give them.

## What it does
Compares `tokenizer.ggml.token_type` with what the converter makes of the reference's added
tokens: special ones are control tokens, others user-defined; the rest are normal, bytes or
unknown as the tokenizer's model says. Where releases of the converter's libraries differ,
either type is right. Types of tokens whose text differs are not compared.

## Why it matters
A control or user-defined token that is stored as a normal one is taken apart when a prompt
holds it, so turns and tools aren't what the model was trained on.

Some are healed by llama.cpp, which knows their text (`<|im_end|>`, `<end_of_turn>`,
fill-in-the-middle...): those are warnings, because other engines don't. A normal token
stored as a control token is never printed.

## Fix
Reconvert: no metadata tool changes items of a list.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load, tokenizer_st_partition,
token_to_piece`; `conversion/base.py: get_vocab_base`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import (
    HEALED,
    SHOWN,
    TYPES,
    TokenType,
    right_vocabulary,
    shown,
    strings,
    tokens,
)

#: (expected, found) -> how bad that is, and what becomes of it.
CONTROL, USER_DEFINED, NORMAL = TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.NORMAL
SPLIT = "a prompt that holds one is taken apart"
SILENT = "what they stand for is never printed"
PRINTED = "they are printed, and text that looks like one becomes one"
GREEDY = "they are cut out of text before it is split"
BYTES = "bytes without a token of their own are lost"
#: Kinds of tokenizer whose prompts hold no control tokens as text.
PLAIN = frozenset({"bert", "t5"})


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if tokens have another type, as bad as the worst of them."""
    del settings
    gguf = conversion.model.gguf
    right = right_vocabulary(conversion)
    listed = strings(tokens(gguf))
    types = gguf.array(TYPES)
    if right is None or (types is None and TYPES in gguf.fields):
        return
    stored = _types(gguf, len(listed))
    differ = {
        id_: verdict
        for id_ in _differing(right, listed, stored)
        if (verdict := _verdict(right, id_, stored[id_])) is not None
    }
    if not differ:
        return
    level = max((level for level, _ in differ.values()), key=lambda level: level.rank)
    first = next(id_ for id_, (each, _) in differ.items() if each is level)
    absent = types is None
    yield Hit(
        message=f"needs the types of the reference's flags, {len(differ):,} of {len(listed):,} tokens "
        f"have another, first id {first} ({shown(listed[first])}): expected "
        f"{_name(right.types[first])}, found {_name(stored[first])}"
        + (f": {TYPES} is absent" if absent else ""),
        where=Where(key=TYPES),
        expected=_name(right.types[first]),
        actual=_name(stored[first]),
        origin=Origin.RUNTIME_DEFAULT if absent else Origin.KEY,
        level=level,
        repair=Reconvert(hint="no metadata tool changes items of a list"),
        consequences=tuple(_effects(right, stored, differ)),
    )


def _types(gguf: Gguf, count: int) -> Sequence[int]:
    """Return the types in effect: llama.cpp takes every token for a normal one."""
    found = gguf.array(TYPES)
    items = [] if found is None else [item if type(item) is int else 0 for item in found.items()]
    return items + [int(NORMAL)] * (count - len(items)) if found is None else items


def _differing(right: Vocabulary, listed: Sequence[str], stored: Sequence[int]) -> Iterator[int]:
    others = right.other_types
    rows = zip(right.types, stored, right.texts, listed, strict=False)
    for id_, (expected, found, text, actual) in enumerate(rows):
        if expected == found or not expected or text is None:
            continue
        if found not in others.get(id_, ()) and _is_text(right, id_, actual):
            yield id_


def _is_text(right: Vocabulary, id_: int, actual: str) -> bool:
    return actual == right.texts[id_] or actual in right.other_texts.get(id_, ())


def _verdict(right: Vocabulary, id_: int, found: int) -> tuple[Severity, str] | None:
    """Say how bad a type is and what becomes of the token, ``None`` for no harm."""
    expected, text = right.types[id_], right.texts[id_] or ""
    if expected == TokenType.UNUSED:
        return None
    if expected == TokenType.BYTE:
        return Severity.ERROR, BYTES
    if expected == TokenType.UNKNOWN:
        return Severity.WARNING, "text without a token is another one's"
    if expected in (CONTROL, USER_DEFINED):
        if text in SHOWN or found == TokenType.UNKNOWN:
            return None
        if found == USER_DEFINED:
            return Severity.WARNING, PRINTED
        if found == CONTROL:
            return None if text in HEALED else (Severity.WARNING, SILENT)
        healed = text in HEALED or right.model in PLAIN
        return Severity.WARNING if healed else Severity.ERROR, SPLIT
    if found == USER_DEFINED:
        return Severity.WARNING, GREEDY
    if found == CONTROL and text in HEALED:
        return None
    return Severity.ERROR, SILENT


def _effects(
    right: Vocabulary,
    stored: Sequence[int],
    differ: dict[int, tuple[Severity, str]],
) -> Iterator[str]:
    """Yield what each kind of change does, and that llama.cpp heals some."""
    counted = Counter(
        (right.types[id_], stored[id_], effect) for id_, (_, effect) in differ.items()
    )
    for (expected, found, effect), count in counted.most_common(4):
        yield f"{count:,} {_name(expected)} stored as {_name(found)}: {effect}"
    healed = sum((right.texts[id_] or "") in HEALED for id_ in differ)
    if healed:
        yield f"llama.cpp takes {healed:,} of them for control tokens by their text, others don't"


def _name(type_: int) -> str:
    return TokenType(type_).name if type_ in TokenType.__members__.values() else str(type_)


RULE = Rule(
    id="TOK016",
    name="token-type-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.VOCABULARY}),
    defers_to=("TOK005", "TOK007"),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load, "
    "tokenizer_st_partition, token_to_piece; conversion/base.py get_vocab_base",
)

"""Tokens aren't the reference's.

## What it does
Compares every token with the one that the converter writes for the reference's tokenizer
files, by id. Padding up to the embedding's rows is right, whatever it is called (`[PADn]`,
`<dummyn>`, `<unkn>`); padding in a real token's place is not. Where releases of the
converter's libraries differ, either spelling is right.

## Why it matters
The model knows tokens by id. A token with another text reads and writes that text; one that
is padding can be neither read nor written, which loses control tokens, tools and
fill-in-the-middle without a word.

## Fix
Reconvert with the tokenizer files of the reference.

## Authority
llama.cpp b11434, `conversion/base.py: get_vocab_base, _create_vocab_sentencepiece`; gguf-py
`gguf/vocab.py: LlamaHfVocab`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import (
    TOKENS,
    TYPES,
    TokenType,
    is_placeholder,
    right_vocabulary,
    shown,
    strings,
    tokens,
)


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for tokens that differ, one for those that the reference hasn't."""
    del settings
    gguf = conversion.model.gguf
    right = right_vocabulary(conversion)
    listed = strings(tokens(gguf))
    if right is None or not listed:
        return
    differ = [*_differing(right, listed)]
    if differ:
        first = differ[0]
        found = listed[first] if first < len(listed) else None
        yield Hit(
            message=f"needs the reference's tokens, {_counted(differ, listed)}, first id {first}: "
            f"expected {shown(right.texts[first])}, found {shown(found)}",
            where=Where(key=TOKENS),
            expected=right.texts[first],
            actual=found,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    strange = [*_strange(right, gguf, listed)]
    if strange:
        first = strange[0]
        yield Hit(
            message=f"needs padding where the reference has no token, {len(strange):,} of "
            f"{len(listed):,} ids have one, first id {first}: {shown(listed[first])}",
            where=Where(key=TOKENS),
            expected=None,
            actual=listed[first],
            origin=Origin.KEY,
            level=Severity.WARNING,
            repair=Reconvert(hint="if that token wasn't added on purpose"),
        )


def _differing(right: Vocabulary, listed: Sequence[str]) -> Iterator[int]:
    """Yield ids of real tokens that have another text, or that aren't in the file at all."""
    others = right.other_texts
    for id_, (expected, found) in enumerate(zip(right.texts, listed, strict=False)):
        if expected != found and expected is not None and found not in others.get(id_, ()):
            yield id_
    for id_ in range(len(listed), len(right.texts)):
        if right.texts[id_] is not None:
            yield id_


def _strange(right: Vocabulary, gguf: Gguf, listed: Sequence[str]) -> Iterator[int]:
    """Yield ids of tokens that the reference hasn't: neither padding nor unused."""
    free = [id_ for id_, text in enumerate(right.texts) if text is None and id_ < len(listed)]
    free += range(len(right.texts), len(listed))
    free = [
        id_ for id_ in free if not is_placeholder(listed[id_]) and listed[id_] not in right.strays
    ]
    types = gguf.array(TYPES) if free else None
    stored = () if types is None else types.items()
    for id_ in free:
        if id_ >= len(stored) or stored[id_] != TokenType.UNUSED:
            yield id_


def _counted(differ: Sequence[int], listed: Sequence[str]) -> str:
    missing = sum(id_ >= len(listed) for id_ in differ)
    if missing == len(differ):
        return f"{missing:,} are behind the end of a list of {len(listed):,}"
    padded = sum(id_ < len(listed) and is_placeholder(listed[id_]) for id_ in differ)
    said = f"{len(differ):,} of {len(listed):,} differ"
    return f"{said}, {padded:,} of them are padding" if padded else said


RULE = Rule(
    id="TOK011",
    name="token-text-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.VOCABULARY}),
    # Of a list that is too short, or that holds a text twice, more is said by these.
    defers_to=("TOK002", "TOK012"),
    authority="llama.cpp b11434 conversion/base.py get_vocab_base, _create_vocab_sentencepiece; "
    "gguf-py gguf/vocab.py LlamaHfVocab",
)

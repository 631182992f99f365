"""Generation doesn't end where the reference's does.

## What it does
Works out which tokens end generation the way llama.cpp does: the ids of `eos`, `eot` and
`eom`, and tokens that it knows by their text. Compares them with the reference's
`generation_config.json` (else `config.json`), and with those of a right conversion.

## Why it matters
A token that the model ends a turn with and that doesn't end generation lets it run on,
with the next turn's headers in the answer. The converter stores one `eos` only: what a list
has besides ends generation by its text or not at all. A token too many cuts answers short.

## Fix
`gguf-new-metadata --special-token-by-id eot ID` writes a copy in which one more token ends
generation.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load` (`special_eog_ids`);
gguf-py `gguf/vocab.py: SpecialVocab._set_special_token` (lists are no ids).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gguf_audit.checkpoint import Tokenizer, Vocabulary
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    OnConversion,
    Outcome,
    Reconvert,
    Repair,
    Rule,
    SetSpecialId,
    Severity,
)
from gguf_audit.runtime.generation import reference_ends
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import (
    SPECIAL_KEYS,
    TOKENS,
    TokenType,
    default_id,
    end_tokens,
    ending_ids,
    right_vocabulary,
    shown,
    strings,
    tokens,
)

ENDING = ("eos", "eot", "eom")
#: Nobody ends generation with a piece of a word: an id that stands for one is another
#: tokenizer's.
CONTROL, USER_DEFINED = TokenType.CONTROL, TokenType.USER_DEFINED


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for ends that are lost, one for those that nobody asked for."""
    del settings
    gguf, checkpoint = conversion.model.gguf, conversion.checkpoint
    right, tokenizer = right_vocabulary(conversion), checkpoint.tokenizer
    listed = strings(tokens(gguf))
    if right is None or isinstance(tokenizer, Absent) or not listed:
        return
    ends = end_tokens(enumerate(listed), ending_ids(gguf, len(listed)))
    kept = end_tokens(enumerate(right.texts), _right(gguf, tokenizer, len(listed)))
    known = [
        id_
        for id_ in sorted(reference_ends(checkpoint))
        if _is_same(right, listed, id_) and right.types[id_] in (CONTROL, USER_DEFINED)
    ]
    lost = [id_ for id_ in known if id_ not in ends]
    lost += sorted(id_ for id_ in kept - ends if _is_same(right, listed, id_) and id_ not in lost)
    if lost:
        yield _lost(gguf, listed, lost, kept)
    added = sorted(id_ for id_ in ends - kept if id_ not in known and _is_same(right, listed, id_))
    if added and tokenizer.complete and not tokenizer.unsure_ids:
        key = next((key for key in _keys(gguf) if gguf.integer(key) in added), SPECIAL_KEYS["eot"])
        yield Hit(
            message="needs generation to end where the reference's does, it ends at "
            f"{_listed(added, listed)} as well",
            where=Where(key=key),
            expected=sorted(kept),
            actual=sorted(ends),
            level=Severity.WARNING,
            repair=Reconvert(),
            also=(SPECIAL_KEYS["eos"], TOKENS),
        )


def _lost(gguf: Gguf, listed: Sequence[str], lost: Sequence[int], kept: frozenset[int]) -> Hit:
    # Where the converter itself drops an end, the file is what it is meant to be.
    dropped = not kept.intersection(lost)
    free = SPECIAL_KEYS["eot"] not in gguf.fields
    repair: Repair = Reconvert()
    if free and len(lost) == 1:
        repair = SetSpecialId(name="eot", id=lost[0])
    why = ": the converter stores one eos only" if dropped else ""
    return Hit(
        message="needs generation to end where the reference's does, it runs on after "
        f"{_listed(lost, listed)}{why}",
        where=Where(key=SPECIAL_KEYS["eot"] if dropped else SPECIAL_KEYS["eos"]),
        expected=sorted(lost),
        actual=None,
        level=Severity.WARNING if dropped else Severity.ERROR,
        repair=repair,
        also=(SPECIAL_KEYS["eot"], SPECIAL_KEYS["eom"], TOKENS),
    )


def _keys(gguf: Gguf) -> Iterator[str]:
    return (SPECIAL_KEYS[name] for name in ENDING if SPECIAL_KEYS[name] in gguf.fields)


def _right(gguf: Gguf, tokenizer: Tokenizer, rows: int) -> dict[str, int]:
    """Return the ids of a right conversion; where nobody knows them, the file's own."""
    ids = ending_ids(gguf, rows)
    if tokenizer.complete and not tokenizer.unsure_ids:
        for name in ENDING:
            ids.pop(name, None)
        default = default_id(gguf, SPECIAL_KEYS["eos"])
        if default is not None and default < rows:
            ids["eos"] = default
    named = tokenizer.special_ids
    return ids | {name: named[name] for name in ENDING if named.get(name, rows) < rows}


def _is_same(right: Vocabulary, listed: Sequence[str], id_: int) -> bool:
    """Tell whether an id stands for the reference's token: what differs is told elsewhere."""
    return (
        id_ < len(right.texts)
        and id_ < len(listed)
        and right.texts[id_] is not None
        and (listed[id_] == right.texts[id_] or listed[id_] in right.other_texts.get(id_, ()))
    )


def _listed(ids: Sequence[int], listed: Sequence[str]) -> str:
    said = [f"id {id_} ({shown(listed[id_])})" for id_ in ids[:3]]
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return ", ".join(said) + more


RULE = Rule(
    id="TOK017",
    name="end-of-generation-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.VOCABULARY}),
    # It follows from an id that is another, or from a token that is.
    defers_to=("TOK003", "TOK004", "TOK011", "TOK012", "TOK018"),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

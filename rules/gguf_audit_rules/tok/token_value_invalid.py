"""A token has a type that there isn't, or a score that is no number.

## What it does
Looks at every item of `tokenizer.ggml.token_type`, which is one of 0 to 6, and at every score of a
vocabulary that is split by score.

## Why it matters
llama.cpp takes a type that it doesn't know for *undefined* and shows nothing where the model
makes that token. A score that is NaN is neither more nor less than another, so which tokens a
text is split into depends on the order in which they are compared.

## Fix
Reconvert: no metadata tool can change one item of a list.

## Authority
llama.cpp b11434, `include/llama.h: llama_token_type`, `src/llama-vocab.cpp:
llama_vocab::impl::load, llama_vocab::impl::token_to_piece, llm_tokenizer_spm_session,
llm_tokenizer_ugm`.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterator
from operator import ne
from typing import Any, Literal

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Array, Gguf, ValueType
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import MODEL, SCORED, SCORES, TYPES, TokenType, tokens

KNOWN = frozenset(map(int, TokenType))


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all wrong types, one for all scores that are no numbers."""
    del settings
    if tokens(model.gguf) is None:
        return
    yield from _types(model)
    yield from _scores(model)


def _types(model: Model) -> Iterator[Outcome]:
    types = model.gguf.array(TYPES)
    if types is None or types.item_type is not ValueType.INT32:
        return
    first, count, passed = None, 0, 0
    for some in _numbers(model.gguf, types, "i"):
        if not KNOWN.issuperset(some):
            wrong = [at for at, each in enumerate(some) if each not in KNOWN]
            first = first or (passed + wrong[0], some[wrong[0]])
            count += len(wrong)
        passed += len(some)
    if first is not None:
        why = "llama.cpp takes it for undefined and shows no text for it"
        yield _hit(TYPES, "a type from 0 to 6", first, count, why)


def _scores(model: Model) -> Iterator[Outcome]:
    scores = model.gguf.array(SCORES)
    if scores is None or scores.item_type is not ValueType.FLOAT32:
        return
    if model.gguf.string(MODEL) not in SCORED:
        return
    first, count, passed = None, 0, 0
    for some in _numbers(model.gguf, scores, "f"):
        # Only NaN differs from itself.
        if any(map(ne, some, some)):
            wrong = [at for at, each in enumerate(some) if math.isnan(each)]
            first = first or (passed + wrong[0], "nan")
            count += len(wrong)
        passed += len(some)
    if first is not None:
        why = "which tokens llama.cpp makes of a text depends on the order that it looks in"
        yield _hit(SCORES, "a number", first, count, why)


def _numbers(gguf: Gguf, stored: Array, form: Literal["i", "f"]) -> Iterator[array[Any]]:
    """Yield the items of an array, some at a time: all of a large vocabulary take 8 MB."""
    swapped = gguf.files[0].byte_order != sys.byteorder
    for piece in stored.stored():
        some = array(form, piece)
        if swapped:
            some.byteswap()
        yield some


def _hit(key: str, wanted: str, first: tuple[int, int | str], count: int, why: str) -> Hit:
    token, found = first
    more = f" (and {count - 1:,} more)" if count > 1 else ""
    return Hit(
        message=f"needs {wanted} for each token, {key} has {found} for token {token}{more}: {why}",
        where=Where(key=key),
        expected=wanted,
        actual=found,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(hint="no metadata tool can change one item of a list"),
    )


RULE = Rule(
    id="TOK028",
    name="token-value-invalid",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    # Against a reference, all types and scores that differ are told at once.
    defers_to=("TOK005", "TOK015", "TOK016"),
    authority="llama.cpp b11434 include/llama.h llama_token_type; src/llama-vocab.cpp "
    "llama_vocab::impl::load",
)

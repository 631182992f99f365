"""A model lacks a part of the vocabulary that llama.cpp can't do without.

## What it does
Looks for `tokenizer.ggml.model`, `tokenizer.ggml.tokens` and, where the tokenizer is
byte-pair encoding, `tokenizer.ggml.merges`. Models that say that they have no vocabulary
(`no_vocab`, `none`) need none of them, and Kimi K2's splitter needs no merges. A header
with neither weights nor any part of a vocabulary is left alone, and so is an architecture
that we don't know.

## Why it matters
llama.cpp refuses the file: `key not found in model: tokenizer.ggml.model`, `cannot find
tokenizer vocab` or `cannot find tokenizer merges in model file`.

## Fix
Reconvert: no metadata tool can add a list.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import (
    MERGED,
    MERGES,
    MODEL,
    NO_VOCABULARY,
    PRE,
    SCORES,
    TOKENS,
    TYPES,
)

#: Its splitter works without merges, so llama.cpp doesn't insist on them.
MERGELESS = "kimi-k2"
PARTS = (MODEL, TOKENS, MERGES, PRE, SCORES, TYPES)


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if a part without which nothing is loaded is missing."""
    del settings
    gguf = model.gguf
    if isinstance(model.architecture, Absent):
        return
    if not (_has_weights(gguf) or any(part in gguf.fields for part in PARTS)):
        return
    missing = [key for key in _needed(gguf) if key not in gguf.fields]
    if not missing:
        return
    first, *others = missing
    yield Hit(
        message=f"needs a whole vocabulary, {', '.join(missing)} "
        f"{'are' if others else 'is'} absent: llama.cpp refuses the file",
        where=Where(key=first),
        expected="present",
        actual=None,
        level=Severity.ERROR,
        repair=Reconvert(hint="no metadata tool can add a list"),
        also=tuple(others),
    )


def _has_weights(gguf: Gguf) -> bool:
    """Tell a model that runs from a header."""
    return any(name == "token_embd.weight" or name.startswith("blk.") for name in gguf.tensors)


def _needed(gguf: Gguf) -> Iterator[str]:
    kind = gguf.string(MODEL)
    yield MODEL
    if kind in NO_VOCABULARY:
        return
    yield TOKENS
    if kind in MERGED and (kind == "gemma4" or gguf.string(PRE) != MERGELESS):
        yield MERGES


RULE = Rule(
    id="TOK008",
    name="vocabulary-incomplete",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

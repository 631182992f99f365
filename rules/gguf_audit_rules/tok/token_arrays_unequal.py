"""Tokens, scores and token types are lists of different lengths.

## What it does
Compares the lengths of `tokenizer.ggml.scores` and `tokenizer.ggml.token_type`, where they
are present, with the number of tokens. A list that is as long as the embedding is right,
and the tokens are not: that is said once, of the token list.

## Why it matters
Each token takes its score and type from the same place in the other lists. A short list is
read past its end or ignored; every later token is then of the wrong kind.

## Fix
Reconvert.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import SCORES, TOKENS, TYPES, embedding_rows, tokens

PARALLEL = (SCORES, TYPES)


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each list that is longer or shorter than the tokens."""
    del settings
    listed = tokens(model.gguf)
    if listed is None:
        return
    for key in PARALLEL:
        parallel = model.gguf.array(key)
        if parallel is None or parallel.count == listed.count:
            continue
        yield Hit(
            message=f"needs one item for each of {listed.count} tokens, {key} has {parallel.count}",
            where=Where(key=key, offset=parallel.offset),
            expected=listed.count,
            actual=parallel.count,
            unit="item",
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
            # As long as the embedding: it's the token list that is wrong.
            also=(TOKENS,) if parallel.count == embedding_rows(model.gguf) else (),
        )


RULE = Rule(
    id="TOK005",
    name="token-arrays-unequal",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("TOK002",),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

"""Two tokens have the same text.

## What it does
Looks for texts that stand twice in `tokenizer.ggml.tokens`. Empty ones are left alone:
llama.cpp gives each a name of its own.

## Why it matters
llama.cpp counts the texts and stops the whole process if there are fewer than ids
(`GGML_ASSERT(id_to_token.size() == token_to_id.size())`). Engines that don't count read one
of the two ids only.

## Fix
Reconvert. Padding needs a name of its own for each id, as in `[PAD151669]`.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import MODEL, NO_VOCABULARY, TOKENS, shown, strings, tokens


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if texts stand in the list more than once."""
    del settings
    if model.gguf.string(MODEL) in NO_VOCABULARY:
        return  # Nothing of it is read.
    stored = tokens(model.gguf)
    if stored is None or not stored.fingerprints().repeats():
        return
    listed = strings(stored)
    seen: dict[str, int] = {}
    doubles = [id_ for id_, text in enumerate(listed) if text and seen.setdefault(text, id_) != id_]
    if not doubles:
        return
    second = doubles[0]
    text = listed[second]
    yield Hit(
        message=f"needs different texts for all tokens, {len(doubles):,} of {len(listed):,} repeat "
        f"another, first id {second}: {shown(text)}, as id {seen[text]}: llama.cpp aborts",
        where=Where(key=TOKENS),
        expected="different texts",
        actual=text,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="TOK012",
    name="token-duplicate",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

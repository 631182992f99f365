"""A special token id is beyond the end of the token list.

## What it does
Checks every `tokenizer.ggml.*_token_id` against the number of tokens. 4294967295 is
llama.cpp's "none" and in order where it has no default that it would take instead.

## Why it matters
llama.cpp warns and uses its own default instead, which is another token; other engines
read past the end of the list.

## Fix
`gguf-new-metadata --special-token-by-id NAME ID`, or reconvert.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load` (`bad special token`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import TOKENS, default_id, embedding_rows, tokens

PREFIX, SUFFIX = "tokenizer.ggml.", "_token_id"
#: ``LLAMA_TOKEN_NULL``, -1, in 32 bits without a sign.
NONE = (1 << 32) - 1


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each id that no token has."""
    del settings
    gguf = model.gguf
    listed = tokens(gguf)
    if listed is None:
        return
    for key, field in gguf.fields.items():
        if not (key.startswith(PREFIX) and key.endswith(SUFFIX)):
            continue
        value = gguf.integer(key)
        if value is None or 0 <= value < listed.count:
            continue
        if value == NONE and default_id(gguf, key) is None:
            continue
        yield Hit(
            message=f"needs an id below {listed.count}, {key} is {value}",
            where=Where(key=key, offset=field.offset),
            expected=f"0 to {listed.count - 1}",
            actual=value,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="or gguf-new-metadata --special-token-by-id, with the right id"),
            # The embedding has its row: it's the token list that is too short.
            also=(TOKENS,) if 0 <= value < (embedding_rows(gguf) or 0) else (),
        )


RULE = Rule(
    id="TOK003",
    name="special-id-out-of-range",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("TOK004", "TOK002"),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

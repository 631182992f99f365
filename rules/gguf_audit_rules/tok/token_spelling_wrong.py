"""The tokens are spelled for another kind of tokenizer.

## What it does
Looks at how tokens begin that stand behind a space: `▁` is SentencePiece's way, `Ġ` that of
byte-level byte-pair encoding (`gpt2`). A file whose tokens have one and whose
`tokenizer.ggml.model` means the other is reported, unless its pre-tokenizer is one that
spells byte pairs with `▁`.

## Why it matters
llama.cpp looks every piece of text up in the wrong spelling: words fall apart into bytes,
and what is generated shows `▁` or `Ġ` where spaces belong.

## Fix
Reconvert with the converter class of the model, or with the right tokenizer files beside it.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load, token_to_piece`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import BPE, MODEL, PRE, tokens

#: Byte pairs spelled like pieces (``escape_whitespaces``).
SPELLED_LIKE_PIECES = frozenset({"gemma4", "granite-embed-multi-311m", "sarvam-moe"})
PIECES, BYTES = "\u2581".encode(), "\u0120".encode()
#: So many tokens of one spelling, and none of the other, leave no doubt.
ENOUGH = 16


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the tokens are spelled for another kind of tokenizer."""
    del settings
    gguf = model.gguf
    kind = gguf.string(MODEL)
    if kind not in (BPE, "llama") or gguf.string(PRE) in SPELLED_LIKE_PIECES:
        return
    own, other, meant = (BYTES, PIECES, "llama") if kind == BPE else (PIECES, BYTES, BPE)
    listed = tokens(gguf)
    if listed is None:
        return
    spelled = 0
    for text in listed.texts():
        # Of a right vocabulary one of the first thousand tokens ends the search.
        if text.startswith(own):
            return
        spelled += text.startswith(other)
    if spelled < ENOUGH:
        return
    yield Hit(
        message=f"needs {MODEL} {meant!r} for its tokens, {spelled:,} of {len(listed):,} begin with "
        f"{other.decode()!r} and none with {own.decode()!r}: {MODEL} is {kind!r}",
        where=Where(key=MODEL),
        expected=meant,
        actual=kind,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="TOK009",
    name="token-spelling-wrong",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    # The same of the same key, where there is a reference.
    defers_to=("TOK010",),
    echoes=True,
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load, token_to_piece",
)

"""A special token is no token at all.

## What it does
Looks at the text of the tokens that `bos`, `eos` and the other special ids stand for: one
that is empty or padding (`[PADn]`, `<dummyn>`, `<unkn>`) is reported.

## Why it matters
The model never prints padding, so an `eos` of padding never ends generation; a `bos` of
padding begins every prompt with a row of the embedding that was never trained.

## Fix
`gguf-new-metadata --special-token-by-id NAME ID` writes a copy with the right id; where the
real token is padded over, reconvert.

## Authority
llama.cpp b11434, `conversion/base.py: get_vocab_base` (`[PADn]`); `src/llama-vocab.cpp:
llama_vocab::impl::load` (`[EMPTY_n]`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import (
    SPECIAL_KEYS,
    TOKENS,
    adds_bos,
    is_placeholder,
    shown,
    tokens,
)

ENDING = frozenset({"eos", "eot", "eom"})


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each special id that stands for padding."""
    del settings
    gguf = model.gguf
    stored = {name: gguf.integer(key) for name, key in SPECIAL_KEYS.items()}
    if all(id_ is None for id_ in stored.values()):
        return
    listed = tokens(gguf)
    if listed is None:
        return
    texts = listed.some((id_ for id_ in stored.values() if id_ is not None), ())
    for name, id_ in stored.items():
        text = None if id_ is None else texts.get(id_)
        if text is None or not is_placeholder(text):
            continue
        key = SPECIAL_KEYS[name]
        harmful = name in ENDING or (name == "bos" and adds_bos(gguf).value)
        yield Hit(
            message=f"needs a real token for {name}, {key} is {id_}: {shown(text)}",
            where=Where(key=key),
            expected="a token that the model knows",
            actual=text,
            origin=Origin.KEY,
            level=Severity.ERROR if harmful else Severity.INFO,
            repair=Reconvert(hint="or gguf-new-metadata --special-token-by-id, if you know the id"),
            also=(TOKENS,),
        )


RULE = Rule(
    id="TOK018",
    name="special-token-placeholder",
    levels=(Severity.ERROR, Severity.INFO),
    check=OnModel(check),
    defers_to=("TOK002", "TOK004", "TOK010", "TOK011", "TOK012"),
    authority="llama.cpp b11434 conversion/base.py get_vocab_base; "
    "src/llama-vocab.cpp llama_vocab::impl::load",
)

"""The file names a tokenizer or a splitter that llama.cpp doesn't know.

## What it does
Looks whether llama.cpp knows the value of `tokenizer.ggml.model` and, where that is a kind
that uses one (`gpt2` and its relatives), of `tokenizer.ggml.pre`. Other kinds may name any
splitter: nobody reads it.

## Why it matters
llama.cpp refuses the file: `unknown tokenizer`, or `unknown pre-tokenizer type`. The name
comes from another engine, from a converter that is ahead of its runtime, or from a newer
llama.cpp than the build that we know: then it loads there and nowhere else.

## Fix
Reconvert with the converter of the llama.cpp that shall run the file. With a reference,
TOK020 says which name is right; `gguf-new-metadata --pre-tokenizer NAME` writes it.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.pre_tokenizers import SPLITTERS, VOCABULARIES
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import BPE, MODEL, PRE

#: Kinds whose splitter llama.cpp looks up; ``gemma4`` brings its own.
SPLIT = frozenset({BPE, "hybriddna", "whitespace"})


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for a name that llama.cpp refuses."""
    del settings
    gguf = model.gguf
    kind, name = gguf.string(MODEL), gguf.string(PRE)
    if kind is None:
        return
    if kind not in VOCABULARIES:
        yield _hit(MODEL, kind, "tokenizer", gguf.fields[MODEL].offset)
    elif kind in SPLIT and name and name not in SPLITTERS:
        yield _hit(PRE, name, "splitter", gguf.fields[PRE].offset)


def _hit(key: str, name: str, what: str, offset: int | None) -> Hit:
    return Hit(
        message=f"needs a {what} that llama.cpp knows, {key} is {name!r}: "
        "build b11434 refuses the file",
        where=Where(key=key, offset=offset),
        expected=f"a {what} of llama.cpp's",
        actual=name,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(hint="with the converter of the llama.cpp that shall run the file"),
    )


RULE = Rule(
    id="TOK021",
    name="tokenizer-unknown",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("TOK020",),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

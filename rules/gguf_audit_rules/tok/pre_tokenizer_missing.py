"""A BPE vocabulary doesn't say how text is split before merging.

## What it does
Looks for `tokenizer.ggml.pre` where the tokenizer is byte-pair encoding (`gpt2`); an empty
name is none. Other kinds of tokenizer don't use the key and are never reported.

## Why it matters
llama.cpp falls back to its `default` splitter with a line in the log (`GENERATION QUALITY
WILL BE DEGRADED`). Numbers, spaces and punctuation become other tokens than in training.

## Fix
`gguf-new-metadata --pre-tokenizer NAME` writes a copy with the right name, or reconvert.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`; pull request 6920.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import BPE, MODEL, PRE

KEY = PRE


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if a BPE vocabulary has no pre-tokenizer."""
    del settings
    gguf = model.gguf
    stored = gguf.fields.get(KEY)
    # llama.cpp asks whether the name is empty, not whether there is one.
    if gguf.string(MODEL) != BPE or (stored is not None and stored.value != ""):
        return
    # A vocabulary by itself generates nothing; it is only out of date.
    level = Severity.ERROR if gguf.tensors else Severity.INFO
    yield Hit(
        message=f"needs a pre-tokenizer for its BPE vocabulary, {KEY} is "
        f"{'absent' if stored is None else 'empty'}: llama.cpp splits text by 'default'",
        where=Where(key=KEY, offset=None if stored is None else stored.offset),
        expected="the name of the reference's splitter",
        actual="default",
        origin=Origin.RUNTIME_DEFAULT,
        level=level,
        repair=Reconvert(hint="or gguf-new-metadata --pre-tokenizer NAME, if you know the name"),
    )


RULE = Rule(
    id="TOK001",
    name="pre-tokenizer-missing",
    levels=(Severity.ERROR, Severity.INFO),
    check=OnModel(check),
    defers_to=("ARCH009", "TOK020"),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load; pull request 6920",
)

"""The token list and the embedding have different lengths.

## What it does
Compares the number of tokens with the rows of `token_embd.weight`.

## Why it matters
llama.cpp takes the vocabulary's size from the token list and refuses an embedding of
another size. Where an engine doesn't, some ids have no row or no text.

## Fix
Reconvert: the converter pads the list to the embedding's rows with `[PADn]` tokens.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_tensors` (`n_vocab` from the vocabulary) and
`src/llama-model-loader.cpp: check_tensor_dims`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import tokens

KEY = "tokenizer.ggml.tokens"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if tokens and embedding rows differ in number."""
    del settings
    listed = tokens(model.gguf)
    embedding = model.gguf.tensors.get("token_embd.weight")
    if listed is None or embedding is None or len(embedding.shape) != 2:
        return
    rows = embedding.shape[1]
    if rows == listed.count:
        return
    yield Hit(
        message=f"needs one token for each of the {rows} rows of token_embd.weight, "
        f"{KEY} has {listed.count}",
        where=Where(key=KEY, tensor=embedding.name, offset=embedding.info_offset),
        expected=rows,
        actual=listed.count,
        unit="token",
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="TOK002",
    name="vocabulary-size-mismatch",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    authority="llama.cpp b11434 src/llama-model.cpp load_tensors",
)

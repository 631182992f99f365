"""The file has another kind of tokenizer than a right conversion.

## What it does
Compares `tokenizer.ggml.model` with what the converter writes for the reference's tokenizer
files: `gpt2` for byte-pair encoding, `llama` for SentencePiece, `bert`, `t5`, `gemma4`.

## Why it matters
Text is taken apart by another algorithm. Byte-pair encoding stored as SentencePiece splits
every word into other tokens than in training, and says nothing; the reverse shows spaces as
unknown bytes.

## Fix
Reconvert: tokens, types, scores and merges of each kind differ.

## Authority
llama.cpp b11434, `conversion/`: `set_vocab` of the converter's class;
`src/llama-vocab.cpp: llama_vocab::impl::load`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import MODEL, NO_VOCABULARY


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the kind of tokenizer isn't the reference's."""
    del settings
    expected = conversion.checkpoint.vocabulary
    found = conversion.model.gguf.string(MODEL)
    if isinstance(expected, Absent) or found is None or found == expected.model:
        return
    lost = "there is no vocabulary" if found in NO_VOCABULARY else "text becomes other tokens"
    yield Hit(
        message=f"needs a tokenizer of kind {expected.model!r}, {MODEL} is {found!r}: {lost}",
        where=Where(key=MODEL),
        expected=expected.model,
        actual=found,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="TOK010",
    name="tokenizer-kind-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.VOCABULARY}),
    defers_to=("TOK007", "TOK008"),
    authority="llama.cpp b11434 conversion/ set_vocab; src/llama-vocab.cpp llama_vocab::impl::load",
)

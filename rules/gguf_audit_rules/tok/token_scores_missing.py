"""A vocabulary that is split by score has no scores.

## What it does
Looks for `tokenizer.ggml.scores` where the tokenizer is SentencePiece (`llama`), unigram
(`t5`) or PLaMo-2's (`plamo2`). Byte-pair encoding merges by rank and needs none.

## Why it matters
Without scores every token is as good as another, so text is split into the wrong tokens.
llama.cpp says nothing.

## Fix
Reconvert: no metadata tool can add a list.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llm_tokenizer_spm_session, llm_tokenizer_ugm`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import MODEL, SCORED, SCORES, tokens


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if a scored vocabulary has no scores."""
    del settings
    gguf = model.gguf
    kind = gguf.string(MODEL)
    if kind not in SCORED or tokens(gguf) is None or SCORES in gguf.fields:
        return
    yield Hit(
        message=f"needs a score for each token of its {kind!r} vocabulary, {SCORES} is absent: "
        "llama.cpp takes 0 for all",
        where=Where(key=SCORES),
        expected="one score per token",
        actual=None,
        origin=Origin.RUNTIME_DEFAULT,
        level=Severity.ERROR,
        repair=Reconvert(hint="no metadata tool can add a list"),
    )


RULE = Rule(
    id="TOK006",
    name="token-scores-missing",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    authority="llama.cpp b11434 src/llama-vocab.cpp llm_tokenizer_spm_session, llm_tokenizer_ugm",
)

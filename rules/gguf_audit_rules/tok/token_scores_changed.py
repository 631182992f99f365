"""Scores of tokens aren't the reference's.

## What it does
Compares the scores of normal tokens with those of the reference's SentencePiece or unigram
model, where the tokenizer splits text by score (`llama`, `t5`). Scores that say nothing
because the reference's files have none are not compared.

## Why it matters
SentencePiece merges the pair with the best score first, and a unigram tokenizer looks for
the best sum. With other scores text becomes other tokens than in training; llama.cpp can't
notice.

## Fix
Reconvert with the reference's `tokenizer.model`.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llm_tokenizer_spm_session, llm_tokenizer_ugm`;
`conversion/base.py: _create_vocab_sentencepiece`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import (
    MODEL,
    SCORED,
    SCORES,
    TokenType,
    right_vocabulary,
    shown,
    strings,
    tokens,
)

#: Scores are stored with 24 bits; others who convert may have rounded theirs.
TOLERANCE = 1e-6


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if normal tokens have other scores."""
    del settings
    gguf = conversion.model.gguf
    right = right_vocabulary(conversion)
    stored = gguf.array(SCORES)
    if right is None or right.scores is None or stored is None or gguf.string(MODEL) not in SCORED:
        return
    if len(set(right.scores)) < 3:
        return  # One score for all, and one for padding.
    listed = strings(tokens(gguf))
    scores = [item if isinstance(item, int | float) else 0.0 for item in stored.items()]
    differ = [*_differing(right.scores, right, listed, scores)]
    if not differ:
        return
    first = differ[0]
    yield Hit(
        message=f"needs the reference's scores, {len(differ):,} of {len(listed):,} tokens have another, "
        f"first id {first} ({shown(listed[first])}): expected {right.scores[first]:g}, "
        f"found {scores[first]:g}",
        where=Where(key=SCORES),
        expected=right.scores[first],
        actual=scores[first],
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _differing(
    wanted: Sequence[float], right: Vocabulary, listed: Sequence[str], scores: Sequence[float]
) -> Iterator[int]:
    """Yield ids of the reference's normal tokens whose score is another."""
    rows = zip(right.texts, listed, right.types, wanted, scores, strict=False)
    for id_, (text, found, type_, expected, score) in enumerate(rows):
        if expected == score or type_ != TokenType.NORMAL or text != found:
            continue
        if not abs(score - expected) <= TOLERANCE * abs(expected):  # nor NaN
            yield id_


RULE = Rule(
    id="TOK015",
    name="token-scores-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.VOCABULARY}),
    defers_to=("TOK005", "TOK007"),
    authority="llama.cpp b11434 src/llama-vocab.cpp llm_tokenizer_spm_session; "
    "conversion/base.py _create_vocab_sentencepiece",
)

"""Merges of a byte-pair vocabulary can't be carried out.

## What it does
Looks for merges that aren't two parts with a space between, and for those whose result is no
token; an empty list is reported as well.

## Why it matters
llama.cpp takes a merge without a space for a pair of two empty texts and says nothing. What
a merge makes and no token stands for falls apart into bytes again, so text becomes other
tokens than in training.

## Fix
Reconvert with the tokenizer files of the reference.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load, llm_tokenizer_bpe_session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Array
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import (
    MERGED,
    MERGES,
    MODEL,
    PRE,
    TOKENS,
    shown,
    strings,
    tokens,
)

#: Its splitter works without merges.
MERGELESS = "kimi-k2"
#: Merges that are looked at in one go.
AT_ONCE = 1024
#: What stands between spaces, and between merges that are joined.
BETWEEN = bytes(set(range(256)) - set(b" \0"))


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if merges are none, or make what is no token."""
    del settings
    gguf = model.gguf
    listed = gguf.array(MERGES)
    if gguf.string(MODEL) not in MERGED or listed is None or gguf.string(PRE) == MERGELESS:
        return
    if not listed.count:
        yield _hit("needs merges, the list is empty", None, expected="at least one")
        return
    stored = tokens(gguf)
    if stored is None or not stored.count or _right(listed, stored):
        return
    merges = strings(listed)
    wrong = _wrong(merges, set(strings(stored)))
    if not wrong:
        return
    first = wrong[0]
    made = _result(merges[first])
    why = "no two parts" if made is None else f"{shown(made)} is no token"
    yield _hit(
        f"needs merges that make tokens, {len(wrong):,} of {len(merges):,} don't, first rank "
        f"{first}: {shown(merges[first])}, {why}",
        merges[first],
        expected="two parts that make a token",
    )


def _right(merges: Array, stored: Array) -> bool:
    """Tell whether every merge makes a token, without the texts: 500,000 merges are real."""
    return stored.fingerprints().held(chain.from_iterable(_made(merges))) == merges.count


def _made(merges: Array) -> Iterator[Iterable[bytes]]:
    """Yield what merges make, some at a time, up to ones with other than one space each."""
    texts = merges.texts()
    while some := list(islice(texts, AT_ONCE)):
        # Without a loop of ours, which would take longer than all the rest.
        joined = b"".join([b"\0", b"\0".join(some), b"\0"])
        if b"\0 " in joined or joined.translate(None, BETWEEN) != b"\0" + b" \0" * len(some):
            return
        yield joined.replace(b" ", b"").split(b"\0")[1:-1]


def _wrong(merges: Sequence[str], texts: set[str]) -> list[int]:
    """Return the ranks of merges that aren't pairs, or whose result is no token."""
    return [rank for rank, merge in enumerate(merges) if _result(merge) not in texts]


def _result(merge: str) -> str | None:
    # As llama.cpp looks for the space: a first part is never empty.
    space = merge.find(" ", 1)
    return None if space < 0 else merge[:space] + merge[space + 1 :]


def _hit(message: str, actual: str | None, *, expected: str) -> Hit:
    return Hit(
        message=message,
        where=Where(key=MERGES),
        expected=expected,
        actual=actual,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
        # A token that is gone leaves merges that make it.
        also=(TOKENS,),
    )


RULE = Rule(
    id="TOK013",
    name="merge-malformed",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("TOK002", "TOK010", "TOK011", "TOK012"),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

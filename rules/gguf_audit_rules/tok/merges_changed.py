"""The merges aren't the reference's.

## What it does
Compares the merges of a byte-pair vocabulary with those of the reference's `tokenizer.json`
or `merges.txt`, in their order.

## Why it matters
Merges are tried in the order of the list. A lost one splits words that it made, and one in
another place makes other words: text becomes other tokens than in training, and nothing
says so.

## Fix
Reconvert, with a gguf-py that knows how the reference's merges are stored (pairs since
transformers 4.45).

## Authority
gguf-py `gguf/vocab.py: SpecialVocab`; llama.cpp b11434, `src/llama-vocab.cpp:
llama_vocab::impl::load`; pull request 9696.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import eq, methodcaller

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Array
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import MERGES, right_vocabulary, shown, strings


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if merges are lost, added or in another order."""
    del settings
    right = right_vocabulary(conversion)
    stored = conversion.model.gguf.array(MERGES)
    if right is None or right.merges is None or stored is None:
        return
    expected = right.merges
    if _are_equal(stored, expected):
        return
    found = strings(stored)
    if len(found) != stored.count:
        return
    pairs = zip(expected, found, strict=False)
    shorter = min(len(expected), len(found))
    first = next((rank for rank, (one, other) in enumerate(pairs) if one != other), shorter)
    wanted = expected[first] if first < len(expected) else None
    actual = found[first] if first < len(found) else None
    yield Hit(
        message=f"needs the reference's merges, {_counted(expected, found)}, first rank {first}: "
        f"expected {shown(wanted)}, found {shown(actual)}",
        where=Where(key=MERGES),
        expected=wanted,
        actual=actual,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _are_equal(stored: Array, expected: Sequence[str]) -> bool:
    """Compare them as they are stored, and keep none: 500,000 are real."""
    wanted = map(methodcaller("encode", "utf-8", "surrogatepass"), expected)
    return stored.count == len(expected) and all(map(eq, wanted, stored.texts()))


def _counted(expected: Sequence[str], found: Sequence[str]) -> str:
    lost = len(set(expected) - set(found))
    added = len(set(found) - set(expected))
    if lost or added:
        return f"{lost:,} of {len(expected):,} are lost and {added:,} added"
    if len(expected) != len(found):
        return f"{len(found):,} stand where {len(expected):,} should"
    return f"the {len(expected):,} are in another order"


RULE = Rule(
    id="TOK014",
    name="merges-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.VOCABULARY}),
    defers_to=("TOK013",),
    authority="gguf-py gguf/vocab.py SpecialVocab; "
    "llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

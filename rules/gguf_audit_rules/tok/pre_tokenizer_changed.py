"""The file names another splitter than the one of the reference's tokenizer.

## What it does
Splits a set of texts (numbers, spaces, lines, code, scripts, signs) with the normalizer and
the pre-tokenizer of the reference's `tokenizer.json`, and with every splitter that llama.cpp
has a name for. Names that split alike are one: `deepseek-v3` and `joyai-llm` are as good as
each other. A name that llama.cpp only means for such a reference, and that comes close to
it, is right too. Where `tokenizer.ggml.pre` is none of them, the finding shows what
changes. Before that, the converter's own question is asked: what it calls a tokenizer that
makes these ids of one long text. That name, where it has one, is right as well, and what the
finding names. The reference's expressions run in a process of their own, with limits.

That a name puts tokens together by merges which the reference takes whole
(`ignore_merges`, as with `smaug-bpe` for Llama 3) is noted: the converter itself picks
such a name where a tokenizer adds no BOS. Without `add_bos_token` in the file it is a
warning, because the usual name implies it and this one doesn't.

Only byte-pair vocabularies (`gpt2`) have pre-tokenizers; others are left alone.

## Why it matters
Text is cut before byte pairs are merged. Cut elsewhere, numbers, spaces and words become
other tokens than in training: worse arithmetic and code, and nothing that tells why.

## Fix
`gguf-new-metadata --pre-tokenizer NAME` writes a copy with the right name.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`, `llm_tokenizer_bpe`;
the reference's `tokenizer.json`, run by `tokenizers`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnConversion,
    Outcome,
    Rule,
    SetPreTokenizer,
    Severity,
)
from gguf_audit.runtime.pre_tokenizers import DEFAULT, SPLITTERS
from gguf_audit.runtime.splitting import Difference, Pieces, Splitting, differences
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import ADD_BOS, BPE, MODEL, PRE

#: Differences that are shown; every one is of another text.
SHOWN = 3
VISIBLE = str.maketrans({" ": "\u2423", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the file's name doesn't split as the reference does."""
    del settings
    gguf = conversion.model.gguf
    if gguf.string(MODEL) != BPE:
        return
    other = conversion.checkpoint.gguf
    if other is not None:
        yield from _against_gguf(gguf, other)
        return
    splitting = conversion.splitting
    if isinstance(splitting, Absent):
        yield NoEvidence(splitting.reason)
        return
    name = _name(gguf)
    if name in splitting.right:
        yield from _merging(conversion, splitting.right)
        return
    # Before an alarm: the converter's own answer, which costs the whole vocabulary.
    named = conversion.names
    if isinstance(named, Absent):
        yield NoEvidence(named.reason)
    elif named:
        if all(name not in SPLITTERS[usual].names for usual in named):
            yield _other_name(gguf, name, named[0], splitting)
    elif not splitting.right:
        yield NoEvidence("llama.cpp has no splitter that does what the reference's does")
    elif SPLITTERS[splitting.right[0]].raw and not (name in SPLITTERS and SPLITTERS[name].raw):
        # Its bytes aren't spelled as letters: no name would make that right.
        yield NoEvidence("the reference has another kind of tokenizer than the file")
    else:
        yield _other_name(gguf, name, _usual(conversion, splitting.right), splitting)


def _name(gguf: Gguf) -> str:
    # llama.cpp asks whether the name is empty, not whether there is one.
    return gguf.string(PRE) or DEFAULT


def _against_gguf(gguf: Gguf, other: Gguf) -> Iterator[Hit]:
    name, wanted = _name(gguf), _name(other)
    if other.string(MODEL) != BPE or wanted not in SPLITTERS or name in SPLITTERS[wanted].names:
        return
    yield _other_name(gguf, name, wanted, None)


def _usual(conversion: Conversion, right: tuple[str, ...]) -> str:
    """Return the name to give: the usual one, unless it takes whole tokens in vain."""
    wants = _ignores_merges(conversion)
    if SPLITTERS[right[0]].ignore_merges and not wants:
        return next((name for name in right if not SPLITTERS[name].ignore_merges), right[0])
    return right[0]


def _ignores_merges(conversion: Conversion) -> bool:
    files = conversion.checkpoint.tokenizer_files
    found = files if isinstance(files, Absent) else files.json
    return not isinstance(found, Absent) and found.options.get("ignore_merges") is True


def _other_name(gguf: Gguf, name: str, wanted: str, splitting: Splitting | None) -> Hit:
    stored = gguf.fields.get(PRE)
    said = f"{PRE} is {name!r}"
    if stored is None or stored.value == "":
        said = f"{PRE} is {'absent' if stored is None else 'empty'}: llama.cpp takes {name!r}"
    shown = "" if splitting is None else _shown(splitting, name)
    return Hit(
        message=f"needs the splitter {wanted!r}, {said}{shown}",
        where=Where(key=PRE, offset=None if stored is None else stored.offset),
        expected=wanted,
        actual=name,
        origin=Origin.KEY if gguf.string(PRE) else Origin.RUNTIME_DEFAULT,
        level=Severity.ERROR,
        repair=SetPreTokenizer(name=wanted),
    )


def _shown(splitting: Splitting, name: str) -> str:
    """Show what changes, one stretch of each of some texts."""
    if name not in SPLITTERS:
        return ", which llama.cpp refuses"
    found: list[Difference] = []
    for ours, theirs in zip(splitting.reference, splitting.named[name], strict=True):
        found += [*differences([ours], [theirs])][:1]
    return "".join(
        f"; HF: {_cut(each.ours)}  this file: {_cut(each.theirs)}" for each in found[:SHOWN]
    )


def _cut(pieces: Pieces) -> str:
    return "|".join(pieces).translate(VISIBLE)


def _merging(conversion: Conversion, right: tuple[str, ...]) -> Iterator[Hit]:
    """Yield a hit where the file's name merges what the reference takes whole."""
    gguf = conversion.model.gguf
    name, usual = _name(gguf), right[0]
    if not SPLITTERS[usual].ignore_merges or SPLITTERS[name].ignore_merges:
        return
    if not _ignores_merges(conversion):
        return
    silent = gguf.fields.get(ADD_BOS) is None
    stored = gguf.fields.get(PRE)
    yield Hit(
        message=f"{PRE} is {name!r}: it splits as {usual!r} does, but merges tokens that the "
        "reference takes whole" + (f", and with {ADD_BOS} absent adds no BOS" if silent else ""),
        where=Where(key=PRE, offset=None if stored is None else stored.offset),
        expected=usual,
        actual=name,
        origin=Origin.KEY,
        level=Severity.WARNING if silent else Severity.INFO,
        repair=SetPreTokenizer(name=usual),
    )


RULE = Rule(
    id="TOK020",
    name="pre-tokenizer-changed",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load, llm_tokenizer_bpe; "
    "the reference's tokenizer.json",
)

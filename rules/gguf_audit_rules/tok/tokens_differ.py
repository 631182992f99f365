"""llama.cpp makes other tokens of a text than the reference's tokenizer.

## What it does
With `--probe`, encodes a set of texts (numbers, spaces, lines, tabs, accents, scripts,
emoji, code, sentences) and every added token by itself: with the reference's
`tokenizer.json`, in a process of its own, and with the vocabulary of the file in the
llama.cpp that is installed beside gguf-audit. Nothing is added around a text, and control
tokens in it are meant as such. The ids have to be the same.

A difference that another finding about the tokenizer explains stands among its
consequences. One that none explains is a warning: it can be a fault of the file's or a
limit of llama.cpp's. An added control token that falls into pieces is an error. Notes are
texts that llama.cpp can't cut as the reference does whatever the file names, a space that only one of both puts in front of a text, a SentencePiece vocabulary whose
scores are all the same, which is what the converter writes for a `tokenizer.json` without
`tokenizer.model`, and added tokens of a `gemma4` vocabulary, whose types the converter
doesn't write.

## Why it matters
The model was trained on the reference's ids: others are another text to it.

## Fix
Reconvert from the reference, with its `tokenizer.model` where it has one.

## Authority
The reference's `tokenizer.json`, run by `tokenizers`; the installed llama.cpp, whose version
the message names: `llama_tokenize`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.gguf import Gguf, Scalar
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnConversion,
    Outcome,
    Reconvert,
    Rule,
    Severity,
)
from gguf_audit.runtime.probe_texts import TEXTS
from gguf_audit.runtime.tokenisation import Ids, Tokenisation, window
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import BPE, MODEL, PRE, SCORES, tokens

PREFIX = "tokenizer.ggml.add_space_prefix"
#: What stands for a space in a vocabulary of pieces, and of bytes.
SPACES = frozenset({"\u2581", "\u0120"})
#: Differences that are shown, and ids of each.
SHOWN, SHOWN_IDS = 3, 8

Both = tuple[Ids, Ids]


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit per kind of difference."""
    del settings
    found = conversion.tokenisation
    if isinstance(found, Absent):
        yield NoEvidence(found.reason)
        return
    comparison = _Comparison(conversion, found, _beyond(conversion))
    yield from comparison.texts() or comparison.prefixes()
    yield from comparison.added()
    if found.left_out:
        reason = f"{found.left_out} of the added tokens aren't looked at, there are so many"
        yield NoEvidence(reason, kind="limit")


def _beyond(conversion: Conversion) -> frozenset[str]:
    """Return the texts that llama.cpp can't split as the reference does, by any name."""
    gguf, splitting = conversion.model.gguf, conversion.splitting
    name = gguf.string(PRE)
    if gguf.string(MODEL) != BPE or isinstance(splitting, Absent) or name not in splitting.right:
        return frozenset()
    both = zip(TEXTS, splitting.reference, splitting.named[name], strict=True)
    return frozenset(text for text, ours, theirs in both if ours != theirs)


class _Comparison:
    """What the ids of a file and of its reference come to."""

    def __init__(self, conversion: Conversion, found: Tokenisation, beyond: frozenset[str]) -> None:
        self._beyond = beyond
        self._gguf = conversion.model.gguf
        self._found = found
        listed = tokens(self._gguf)
        self._tokens: Sequence[Scalar] = () if listed is None else listed.items()
        files = conversion.checkpoint.tokenizer_files
        known = files if isinstance(files, Absent) else files.json
        self._special = frozenset(
            () if isinstance(known, Absent) else (t.content for t in known.added if t.special)
        )

    def texts(self) -> list[Hit]:
        """Return a hit for texts that aren't the same but for what comes in front."""
        found = self._different(self._found.lines)
        if not found:
            return []
        why = ""
        if _flat_scores(self._gguf):
            why = f"; all of {SCORES} are the same, which is what llama.cpp merges by"
        elif all(text in self._beyond for text, _ in found):
            why = "; llama.cpp only comes close to the reference's splitter"
        return [
            Hit(
                message=f"{self._found.runtime} makes other tokens of {len(found)} of "
                f"{len(self._found.lines)} texts than the reference{why}{self._shown(found)}",
                where=Where(),
                expected={text: list(both[0]) for text, both in found[:SHOWN]},
                actual={text: list(both[1]) for text, both in found[:SHOWN]},
                level=Severity.INFO if why else Severity.WARNING,
                repair=Reconvert(),
            )
        ]

    def prefixes(self) -> list[Hit]:
        """Return a hit where only what comes in front isn't the same."""
        found = [each for each in self._found.texts.items() if each[1][0] != each[1][1]]
        if not found:
            return []
        return [
            Hit(
                message=f"{self._found.runtime} and the reference don't both put a space in "
                f"front of a text{self._shown(found[:1])}",
                where=Where(key=PREFIX),
                level=Severity.INFO,
            )
        ]

    def added(self) -> Iterator[Hit]:
        """Yield a hit for added tokens that aren't the same."""
        # One that the file has no row for is another fault, or none: Gemma 3 270M lacks the
        # image token of its larger relatives.
        found = [
            each
            for each in self._different(self._found.added)
            if all(id_ < len(self._tokens) for id_ in each[1][0])
        ]
        # Its converter leaves all but a few of them what they are to SentencePiece: normal.
        untyped = self._gguf.string(MODEL) == "gemma4"
        for level, some in (
            (Severity.ERROR, [each for each in found if each[0] in self._special]),
            (Severity.WARNING, [each for each in found if each[0] not in self._special]),
        ):
            if not some:
                continue
            kind = "control" if level is Severity.ERROR else "other"
            yield Hit(
                message=f"{self._found.runtime} makes other tokens of {len(some)} {kind} added "
                f"tokens than the reference{self._shown(some)}",
                where=Where(),
                expected={text: list(both[0]) for text, both in some[:SHOWN]},
                actual={text: list(both[1]) for text, both in some[:SHOWN]},
                level=Severity.INFO if untyped else level,
                repair=Reconvert(),
            )

    def _different(self, texts: Mapping[str, Both]) -> list[tuple[str, Both]]:
        return [each for each in texts.items() if not self._alike(*each[1])]

    def _alike(self, ours: Ids, theirs: Ids) -> bool:
        """Tell whether ids are the same, but for a space in front of one of them."""
        if ours == theirs:
            return True
        if len(ours) == len(theirs) + 1:
            return ours[1:] == theirs and self._found.names.get(ours[0]) in SPACES
        return theirs[1:] == ours and self._token(theirs[0]) in SPACES

    def _token(self, id_: int) -> str:
        return str(self._tokens[id_]) if id_ < len(self._tokens) else "?"

    def _shown(self, found: Sequence[tuple[str, Both]]) -> str:
        return "".join(
            f"; HF: {_cut(left, self._found.names)}  this file: {_cut(right, self._tokens)}"
            for left, right in (window(*both) for _, both in found[:SHOWN])
        )


def _flat_scores(gguf: Gguf) -> bool:
    scores = gguf.array(SCORES)
    return gguf.string(MODEL) == "llama" and scores is not None and len({*scores.items()}) == 1


def _cut(ids: Ids, names: Mapping[int, str] | Sequence[Scalar]) -> str:
    """Show tokens and their ids, ``12|345 (717, 12901)``."""
    some = ids[:SHOWN_IDS]
    known = dict(enumerate(names)) if isinstance(names, Sequence) else names
    cut = "|".join(str(known.get(id_, "?")) for id_ in some).replace("\n", "\\n")
    more = "..." if len(ids) > len(some) else ""
    return f"{cut}{more} ({', '.join(map(str, some))}{more})" if ids else "nothing"


RULE = Rule(
    id="TOK022",
    name="tokens-differ",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.TOKENIZER}),
    defers_to=("TOK",),
    authority="the reference's tokenizer.json, run by tokenizers; the installed llama.cpp: "
    "llama_tokenize",
)

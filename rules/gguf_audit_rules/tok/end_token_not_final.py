"""What the chat template prints after an answer doesn't end generation.

## What it does
Renders an answer, in the middle of a conversation and at its end, and looks which tokens of
the vocabulary stand behind it, up to the next message: markers that begin with `<`, `[`, `]` or
`|`. One of them has to be in the set with which llama.cpp
ends generation: `eos`, `eot` and `eom`, and tokens that it knows by their text. Where the
reference generates on after that token as well, it is worth knowing; where it doesn't, it is
an error; without a reference it is a warning.

## Why it matters
The model ends its answer and nobody notices: it goes on with the user's next question, until
the context is full.

## Fix
`gguf-new-metadata --special-token-by-id eot ID` writes a copy that names the token.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load` (`special_eog_ids`);
`generation_config.json` of the reference, `eos_token_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.chat import ANSWER, DEFAULT, QUESTION_AGAIN, TEMPLATE, Analysis
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, SetSpecialId, Severity
from gguf_audit.runtime.generation import Generation
from gguf_audit.runtime.vocabulary import SPECIAL_KEYS
from gguf_audit.where import Where
from gguf_audit_rules._chat import analysed, chat_of, shown
from gguf_audit_rules.tok._vocabulary import TYPES, TokenType

#: Types of tokens that are looked for whole.
MARKED = (TokenType.CONTROL, TokenType.USER_DEFINED)


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if no token behind an answer ends it."""
    chat = chat_of(model.chat)
    for _, analysis in analysed(chat, DEFAULT):
        tokens = model.generation
        if tokens is None:
            return
        marked = _marked(model, tokens)
        printed = [id_ for text in _behind(analysis) for id_ in _found(marked, text)]
        if printed:
            yield from _judged(tokens, printed, settings)


def _judged(tokens: Generation, printed: list[int], settings: Settings) -> Iterator[Outcome]:
    if any(id_ in tokens.ends for id_ in printed):
        return
    id_ = printed[0]
    ends = settings.reference_ends
    ended = Severity.WARNING if ends is None else Severity.INFO
    yield Hit(
        message=(
            f"needs {shown(tokens.texts[id_])} to end generation as the template prints it"
            " after an answer, it doesn't"
        ),
        where=Where(key=SPECIAL_KEYS["eos"]),
        expected=id_,
        actual=sorted(tokens.ends),
        level=Severity.ERROR if ends is not None and id_ in ends else ended,
        repair=SetSpecialId(name="eot", id=id_),
        also=(TEMPLATE,),
    )


def _behind(analysis: Analysis) -> Iterator[str]:
    """Yield what stands between an answer and the next message, or the end."""
    for name in ("an answer", "several turns"):
        _, answer, rest = (analysis.text(name) or "").partition(ANSWER)
        if answer:
            yield rest.partition(QUESTION_AGAIN)[0]


def _marked(model: Model, tokens: Generation) -> dict[int, str]:
    """Return the markers that a tokenizer finds whole in any text."""
    types = model.gguf.array(TYPES)
    kinds = () if types is None else types.items()
    return {
        id_: text
        for id_, text in tokens.texts.items()
        if text and (id_ in tokens.ends or (id_ < len(kinds) and kinds[id_] in MARKED))
    }


def _found(marked: dict[int, str], text: str) -> Iterator[int]:
    """Yield the markers that a text begins with, and those behind them."""
    # Gemma has 6,000 markers: as alternatives they would take longer than all the rest.
    ids = {token: id_ for id_, token in marked.items() if token in text}
    # The longest first: a tokenizer takes it so, too.
    pattern = re.compile("|".join(map(re.escape, sorted(ids, key=len, reverse=True))))
    first = pattern.match(text.lstrip()) if ids else None
    if first is not None:
        yield from (ids[found[0]] for found in pattern.finditer(text))


RULE = Rule(
    id="TOK027",
    name="end-token-not-final",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnModel(check),
    needs=frozenset({Need.RENDER}),
    defers_to=("TOK004", "TPL005"),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

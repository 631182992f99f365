"""Prompts lack the BOS token that the reference's prompts begin with.

## What it does
Renders a question with the reference's template and with the file's. The file's prompt has a
BOS token if its template prints one or if `add_bos_token` is in effect, by the file or by
llama.cpp's default. The reference's has one if its template prints it.

## Why it matters
Many models answer nonsense without it: it takes most of the attention of every layer.

## Fix
Set `tokenizer.ggml.bos_token_id`, or convert again.

## Authority
transformers 5.24, `apply_chat_template` (adds no special tokens of its own); llama.cpp b11434,
`src/llama-vocab.cpp: llama_vocab::impl::load` and `common/chat.cpp:
common_chat_template_direct_apply_impl`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import DEFAULT, TEMPLATE, Analysis
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.vocabulary import ADD_BOS, SPECIAL_KEYS, adds_bos
from gguf_audit.where import Where
from gguf_audit_rules._chat import analysed, chat_of, leading


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the file's prompts begin with none where they should with one."""
    del settings
    chat = chat_of(conversion.model.chat)
    own = [analysis for _, analysis in analysed(chat, DEFAULT)]
    expected = [analysis for _, analysis in analysed(chat_of(conversion.expected_chat), DEFAULT)]
    if not own or not expected or any(each.text("a question") is None for each in own):
        return
    if chat.bos:
        adds = adds_bos(conversion.model.gguf)
        opened = adds.value or any(_opened(each, chat.bos) for each in own)
        if not opened and all(_opened(each, chat.bos) for each in expected):
            yield Hit(
                message=(
                    "needs a BOS token in front of a prompt as the reference's template prints,"
                    f" this template prints none and {ADD_BOS} is off"
                ),
                where=Where(key=TEMPLATE),
                origin=adds.origin,
                level=Severity.ERROR,
                repair=Reconvert(),
            )
    elif all("bos_token" in each.variables for each in expected) and _has_bos(conversion):
        key = SPECIAL_KEYS["bos"]
        yield Hit(
            message=f"needs a BOS token in front of a prompt, {key} names none",
            where=Where(key=key),
            level=Severity.ERROR,
            repair=Reconvert(),
        )


def _opened(analysis: Analysis, bos: str) -> bool:
    return leading(analysis.text("a question"), bos) > 0


def _has_bos(conversion: Conversion) -> bool:
    tokenizer = conversion.checkpoint.tokenizer
    return not isinstance(tokenizer, Absent) and "bos" in tokenizer.special_ids


RULE = Rule(
    id="TOK026",
    name="bos-missing",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.RENDER}),
    defers_to=("TOK004", "TPL003", "TPL004", "TPL005"),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load",
)

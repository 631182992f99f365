"""A special token is not the reference's.

## What it does
Compares the special ids in effect (the key, else llama.cpp's default for that kind of
tokenizer) with those that the converter writes for the reference.

## Why it matters
With a wrong end token generation runs on, with a wrong begin token a model like Gemma
prints nonsense, and a wrong separator token spoils embeddings. llama.cpp says little or
nothing. Another padding token is only noted, as nothing in llama.cpp pads; so is another
begin token that is never used: `add_bos_token` is false and no chat template names it.

## Fix
`gguf-new-metadata --special-token-by-id NAME ID` writes a copy with the right id.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`; gguf-py
`gguf/vocab.py: SpecialVocab` for which source decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.chat import template_name
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnConversion,
    Outcome,
    Reconvert,
    Rule,
    SetSpecialId,
    Severity,
)
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import ADD_BOS, MODEL, SPECIAL_KEYS, special_id, tokens

#: Without bos and eos generation itself goes wrong. llama.cpp pads nothing, and who
#: trains on a model often gives it another padding token on purpose.
LEVELS = {"bos": Severity.ERROR, "eos": Severity.ERROR, "pad": Severity.INFO}


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each special id that is lost or changed."""
    del settings
    gguf = conversion.model.gguf
    if gguf.string(MODEL) is None or tokens(gguf) is None:
        return  # Without a vocabulary there is nothing that an id could mean.
    tokenizer = conversion.checkpoint.tokenizer
    if isinstance(tokenizer, Absent):
        yield NoEvidence(f"the special tokens: {tokenizer.reason}")
        return
    for name, key in SPECIAL_KEYS.items():
        expected = tokenizer.special_ids.get(name)
        found = special_id(gguf, name)
        level = LEVELS.get(name, Severity.WARNING)
        if name == "bos" and _is_never_begun_with(gguf):
            level = Severity.INFO
        if expected is not None and (found is None or found.value != expected):
            yield Hit(
                message=f"needs {name} token {expected}, {key} is "
                + _said(None if found is None else found.value, absent=key not in gguf.fields),
                where=Where(key=key),
                expected=expected,
                actual=None if found is None else found.value,
                origin=None if found is None else found.origin,
                level=level,
                repair=SetSpecialId(name=_gguf_name(key), id=expected),
            )
        elif expected is None and name in tokenizer.unsure_ids and key not in gguf.fields:
            yield Hit(
                message=f"needs a {name} token as the reference has one, {key} is "
                + _said(None if found is None else found.value, absent=True),
                where=Where(key=key),
                expected="the reference's id",
                actual=None if found is None else found.value,
                origin=None if found is None else found.origin,
                level=level,
                repair=Reconvert(),
            )
    if tokenizer.unsure_ids or not tokenizer.complete:
        yield NoEvidence("which ids the special tokens have: the tokenizer isn't at hand")


def _is_never_begun_with(gguf: Gguf) -> bool:
    """Tell whether nothing puts a begin token in front: published Qwen files lack its id."""
    adds = gguf.fields.get(ADD_BOS)
    if adds is None or adds.value is not False:
        return False
    texts = (field.value for key, field in gguf.fields.items() if template_name(key) is not None)
    return not any(isinstance(text, str) and "bos_token" in text for text in texts)


def _said(value: int | None, *, absent: bool) -> str:
    if not absent:
        return str(value)
    return "absent" if value is None else f"absent, so llama.cpp takes {value}"


def _gguf_name(key: str) -> str:
    return key.removeprefix("tokenizer.ggml.").removesuffix("_token_id")


RULE = Rule(
    id="TOK004",
    name="special-id-changed",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load; "
    "gguf-py gguf/vocab.py SpecialVocab",
)

"""What is added to every text isn't what the reference adds.

## What it does
Compares the switches in effect (the key, else llama.cpp's default for that kind of tokenizer
and pre-tokenizer) with what the converter writes for the reference: `add_bos_token`,
`add_eos_token`, `add_sep_token`, `add_space_prefix`, `remove_extra_whitespaces`, and
`normalizer.lowercase` and `normalizer.strip_accents` of word pieces. Where releases of gguf-py
differ, either value is right.

## Why it matters
Without its begin token a model like Gemma prints nonsense, with one too many others lose
quality; an embedder without its end token pools something else. A space in front changes the
first token of every text. llama.cpp says nothing.

## Fix
`gguf-new-metadata` can't add a switch; `gguf-editor-gui` can, `gguf-set-metadata` changes none.
`--override-kv tokenizer.ggml.add_bos_token=bool:true` helps for one run.

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`; gguf-py `gguf/vocab.py:
SpecialVocab`; `conversion/`: `set_vocab` of the converter's class.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, SetKey, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import MODEL, adds, right_vocabulary, special_id

#: Nothing is added where there is no such token.
TOKEN = {"add_bos_token": "bos", "add_eos_token": "eos", "add_sep_token": "sep"}
SERIOUS = frozenset({"add_bos_token", "add_eos_token"})
#: Kinds of tokenizer that read a switch; the others are read by all.
ONLY = {
    "normalizer.lowercase": frozenset({"bert", "whitespace"}),
    "normalizer.strip_accents": frozenset({"bert"}),
    "remove_extra_whitespaces": frozenset({"t5"}),
    "add_space_prefix": frozenset({"llama", "t5"}),
}
LOWERCASE = "normalizer.lowercase"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each switch that is another in effect."""
    del settings
    gguf = conversion.model.gguf
    right = right_vocabulary(conversion)
    if right is None:
        return
    for name, values in right.switches.items():
        if gguf.string(MODEL) not in ONLY.get(name, {gguf.string(MODEL)}) or _has_no(gguf, name):
            continue
        key = f"tokenizer.ggml.{name}"
        field = gguf.fields.get(key)
        if field is not None and not isinstance(field.value, bool):
            continue  # TOK007
        stored = None if field is None or not isinstance(field.value, bool) else field.value
        expected = {_effective(gguf, name, value) for value in values}
        found = _effective(gguf, name, stored)
        if found in expected:
            continue
        wanted = not found
        absent = "" if field is not None else f"absent, so llama.cpp takes {_said(found)}"
        yield Hit(
            message=f"needs {name} {_said(wanted)} as the reference has it, {key} is "
            + (absent or _said(found)),
            where=Where(key=key),
            expected=wanted,
            actual=found,
            origin=Origin.KEY if field is not None else Origin.RUNTIME_DEFAULT,
            level=_level(name, values),
            repair=SetKey(key=key, value=wanted, present=field is not None),
        )


def _effective(gguf: Gguf, name: str, stored: bool | None) -> bool:
    if name == "normalizer.strip_accents" and stored is None:
        # llama.cpp strips accents where it lowers.
        lowered = gguf.fields.get(f"tokenizer.ggml.{LOWERCASE}")
        value = None if lowered is None else lowered.value
        return adds(gguf, LOWERCASE, value if isinstance(value, bool) else None)
    return adds(gguf, name, stored)


def _level(name: str, values: tuple[bool | None, ...]) -> Severity:
    """Return an error where the reference itself says how its texts begin and end."""
    return Severity.ERROR if name in SERIOUS and None not in values else Severity.WARNING


def _has_no(gguf: Gguf, name: str) -> bool:
    return name in TOKEN and special_id(gguf, TOKEN[name]) is None


def _said(value: bool) -> str:
    return "true" if value else "false"


RULE = Rule(
    id="TOK019",
    name="tokenizer-switch-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.VOCABULARY}),
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load; "
    "gguf-py gguf/vocab.py SpecialVocab",
)

"""A key of the vocabulary has another type than llama.cpp demands.

## What it does
Compares the type of every `tokenizer.ggml.*` key that llama.cpp reads for that kind of
tokenizer with the type that its loader asks for: tokens and merges are lists of strings,
scores of `f32` or `i32`, token types of `i32`; ids are `u32`, switches `bool`, names strings.

## Why it matters
There is no conversion: a list of numbers for the tokens, or an end token stored as `i32` or
as a string, is an error on load (`invalid gguf type for ...`, `key ... has wrong type`), also
for keys that may be absent.

## Fix
Reconvert, or write the key again with the right type (`gguf-editor-gui`).

## Authority
llama.cpp b11434, `src/llama-vocab.cpp: llama_vocab::impl::load`,
`src/llama-model-loader.cpp: GKV::get_kv`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Array, Field, Gguf, ValueType
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules._fields import type_name
from gguf_audit_rules.tok._vocabulary import MERGED, MERGES, MODEL, NO_VOCABULARY, TOKENS

CHARSMAP = "tokenizer.ggml.precompiled_charsmap"
#: Read before anything else, of every kind of tokenizer.
FIRST = {
    MODEL: ValueType.STRING,
    "tokenizer.ggml.pre": ValueType.STRING,
    "tokenizer.ggml.token_type_count": ValueType.UINT32,
}
IDS = (
    *("bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask"),
    *("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"),
    *("prefix", "suffix", "middle"),
)
SWITCHES = (
    *("add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix"),
    *("remove_extra_whitespaces", "normalizer.lowercase", "normalizer.strip_accents"),
)
SCALARS = {
    **FIRST,
    **{f"tokenizer.ggml.{name}_token_id": ValueType.UINT32 for name in IDS},
    **{f"tokenizer.ggml.{name}": ValueType.BOOL for name in SWITCHES},
}
#: Key of a list -> types that its items may have.
LISTS = {
    TOKENS: (ValueType.STRING,),
    "tokenizer.ggml.scores": (ValueType.FLOAT32, ValueType.INT32),
    "tokenizer.ggml.token_type": (ValueType.INT32,),
    MERGES: (ValueType.STRING,),
    CHARSMAP: (ValueType.INT8, ValueType.UINT8),
    "tokenizer.ggml.suppress_tokens": (ValueType.INT32,),
}


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key whose type llama.cpp refuses."""
    del settings
    gguf = model.gguf
    for key in (*SCALARS, *LISTS):
        field = gguf.fields.get(key)
        if field is None or field.type is None or _fits(field) or not _is_read(gguf, key):
            continue
        yield Hit(
            message=f"needs {_wanted(key)}, {key} is {type_name(field)}: llama.cpp refuses the file",
            where=Where(key=key, offset=field.offset),
            expected=_wanted(key),
            actual=type_name(field),
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="or write the key again with the right type"),
        )


def _is_read(gguf: Gguf, key: str) -> bool:
    """Tell whether llama.cpp looks at a key for this kind of tokenizer."""
    kind = gguf.string(MODEL)
    if kind is None or key in FIRST:
        return True
    if kind in NO_VOCABULARY:
        return False
    if key == MERGES:
        return kind in MERGED
    return key != CHARSMAP or kind == "t5"


def _fits(field: Field) -> bool:
    if isinstance(field.value, Array):
        return field.value.item_type in LISTS.get(field.key, ())
    return field.type is SCALARS.get(field.key)


def _wanted(key: str) -> str:
    if key in SCALARS:
        return SCALARS[key].name.lower()
    return f"an array of {' or '.join(item.name.lower() for item in LISTS[key])}"


RULE = Rule(
    id="TOK007",
    name="vocabulary-type-wrong",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    # The same of the same key, where the architecture is known.
    defers_to=("ARCH007",),
    echoes=True,
    authority="llama.cpp b11434 src/llama-vocab.cpp llama_vocab::impl::load; "
    "src/llama-model-loader.cpp GKV::get_kv",
)

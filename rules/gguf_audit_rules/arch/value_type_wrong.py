"""A metadata value has another type than llama.cpp demands.

## What it does
Compares the type of every key that llama.cpp reads for the architecture with the type that
its loader asks for: 32-bit unsigned, 32-bit float, bool or string, exactly; arrays of
integers may be signed, unsigned or bool. Rotary sections are four. A float has to be a
number: neither NaN nor, but for a limit, infinite. A bool has to be stored as 0 or 1.

## Why it matters
There is no conversion: an `i32` where a `u32` is wanted, a `u64`, an `f64` or a number
where an array is wanted is an error on load (`key ... has wrong type`), also for optional
keys. A NaN loads and makes every answer one. Another byte than 0 or 1 is true for one
engine and false for the next. Files edited by hand or by tools that guess types have these
faults.

## Fix
Write the key again with the right type (`gguf-editor-gui`, or reconvert):
`gguf-set-metadata` keeps the type that is there.

## Authority
llama.cpp b11434, `src/llama-model-loader.cpp: GGUFMeta::GKV::get_kv, get_arr,
get_key_or_arr`, `src/llama-vocab.cpp: load`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.arch import Kind
from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Array, Field, ValueType
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules._fields import type_name

SCALARS = {
    Kind.COUNT: ValueType.UINT32,
    Kind.COUNTS: ValueType.UINT32,
    Kind.NUMBER: ValueType.FLOAT32,
    Kind.NUMBERS: ValueType.FLOAT32,
    Kind.FLAG: ValueType.BOOL,
    Kind.TEXT: ValueType.STRING,
}
WHOLE = frozenset({ValueType.UINT32, ValueType.INT32})
ITEMS = {
    Kind.COUNTS: WHOLE | {ValueType.BOOL},
    Kind.LIST: WHOLE | {ValueType.BOOL},
    Kind.WHOLE_LIST: WHOLE,
    Kind.NUMBERS: frozenset({ValueType.FLOAT32}),
    Kind.LONG_LIST: frozenset({ValueType.UINT64}),
    Kind.TEXT_LIST: frozenset({ValueType.STRING}),
}
#: Arrays whose length no other key says.
LENGTHS = {"rope.dimension_sections": 4}
#: In the names of limits.
CLAMP = "clamp"
#: Keys without an architecture in front; the ids of special tokens by their ending.
GENERAL = {
    "general.architecture": Kind.TEXT,
    "general.name": Kind.TEXT,
    "general.file_type": Kind.COUNT,
    "general.alignment": Kind.COUNT,
    "tokenizer.ggml.model": Kind.TEXT,
    "tokenizer.ggml.pre": Kind.TEXT,
    "tokenizer.ggml.token_type_count": Kind.COUNT,
    "tokenizer.ggml.add_bos_token": Kind.FLAG,
    "tokenizer.ggml.add_eos_token": Kind.FLAG,
    "tokenizer.ggml.add_sep_token": Kind.FLAG,
    "tokenizer.ggml.add_space_prefix": Kind.FLAG,
    "tokenizer.ggml.remove_extra_whitespaces": Kind.FLAG,
}


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key whose type llama.cpp refuses."""
    del settings
    if isinstance(model.architecture, Absent):
        return
    for field in model.fields:
        kind = _kind(model, field.key)
        if kind is None or field.type is None:
            continue
        if _fits(field, kind):
            yield from _other_length(model, field)
            yield from _not_a_number(field)
            yield from _neither_true_nor_false(field)
            continue
        yield Hit(
            message=f"needs {kind.value}, {field.key} is {type_name(field)}: llama.cpp refuses the file",
            where=Where(key=field.key, offset=field.offset),
            expected=kind.value,
            actual=type_name(field),
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="or write the key again with the right type"),
        )


def _other_length(model: Model, field: Field) -> Iterator[Outcome]:
    count = LENGTHS.get(field.key.removeprefix(model.fields.key("")))
    if count is None or not isinstance(field.value, Array) or len(field.value) == count:
        return
    yield Hit(
        message=f"needs {count} items, {field.key} has {len(field.value)}: llama.cpp refuses "
        "the file",
        where=Where(key=field.key, offset=field.offset),
        expected=count,
        actual=len(field.value),
        unit="item",
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _not_a_number(field: Field) -> Iterator[Outcome]:
    found = [value for value in _floats(field) if not math.isfinite(value)]
    # No limit at all is infinite by right.
    if not found or (CLAMP in field.key and not any(map(math.isnan, found))):
        return
    state = "is" if isinstance(field.value, float) else "has"
    yield Hit(
        message=f"needs a finite number, {field.key} {state} {found[0]}: "
        "llama.cpp loads the file and computes with it",
        where=Where(key=field.key, offset=field.offset),
        expected="a finite number",
        actual=str(found[0]),
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _neither_true_nor_false(field: Field) -> Iterator[Outcome]:
    byte = field.odd_bool if field.odd_bool is not None else _odd_item(field)
    if byte is None:
        return
    state = "has" if isinstance(field.value, Array) else "is"
    yield Hit(
        message=f"needs true or false, stored as 1 or 0, {field.key} {state} the byte {byte}: "
        "engines don't agree on what that is",
        where=Where(key=field.key, offset=field.offset),
        expected="0 or 1",
        actual=byte,
        origin=Origin.KEY,
        level=Severity.WARNING,
        repair=Reconvert(),
    )


def _odd_item(field: Field) -> int | None:
    """Return the first byte of an array of bools that is neither 0 nor 1."""
    if not isinstance(field.value, Array) or field.value.item_type is not ValueType.BOOL:
        return None
    if len(field.value) > LIMITS.blocks:
        return None
    return next((byte for chunk in field.value.stored() for byte in chunk if byte > 1), None)


def _floats(field: Field) -> list[float]:
    """Return a field's floats; none of an array that is no model's."""
    if isinstance(field.value, float):
        return [field.value]
    if not isinstance(field.value, Array) or len(field.value) > LIMITS.blocks:
        return []
    if field.value.item_type is not ValueType.FLOAT32:
        return []
    return [item for item in field.value.items() if isinstance(item, float)]


def _kind(model: Model, key: str) -> Kind | None:
    """Return what type a key must have, ``None`` where llama.cpp doesn't look."""
    if key in GENERAL:
        return GENERAL[key]
    if key.startswith("tokenizer.ggml.") and key.endswith("_token_id"):
        return Kind.COUNT
    name = key.removeprefix(model.fields.key(""))
    if model.fields.key(name) != key or not arch.reads(model.fields.architecture, name):
        return None
    return arch.kind(name)


def _fits(field: Field, kind: Kind) -> bool:
    if isinstance(field.value, Array):
        return field.value.item_type in ITEMS.get(kind, frozenset())
    return field.type is SCALARS.get(kind)


RULE = Rule(
    id="ARCH007",
    name="value-type-wrong",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    authority="llama.cpp b11434 src/llama-model-loader.cpp GKV::get_kv, get_arr",
)

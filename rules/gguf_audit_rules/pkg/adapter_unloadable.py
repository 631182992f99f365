"""An adapter is one that llama.cpp doesn't load, or whose scale is lost.

## What it does
Looks for what the loader asks for: `general.type` is `adapter`, `adapter.type` is `lora`, an
architecture is named, every tensor is half of a complete pair (or a norm), and both halves
have one rank. Alpha has to be a float; where it is absent or 0, that is said as well. Where the
model isn't known, so is a pair for the embedding alone, which may be tied to the output.

## Why it matters
llama.cpp stops at the first of these. Without alpha it loads the adapter and adds it at its
full size, instead of alpha divided by the rank.

## Fix
Convert the adapter again with convert_lora_to_gguf.py.

## Authority
llama.cpp b11434, `src/llama-adapter.cpp: llama_adapter_lora_init_impl, get_scale`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.gguf import Array, Field, Gguf, ValueType
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.lora import ALPHA, EMBEDDING, INVOCATION, Pair, Pairs, pairs_of
from gguf_audit.where import Where
from gguf_audit_rules._fields import type_name
from gguf_audit_rules.wt._tensors import listed

OUTPUT = "output.weight"
NAMED = (("general.type", "adapter"), ("adapter.type", "lora"))
TEXTS = ("adapter.lora.task_name", "adapter.lora.prompt_prefix")


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key, and one for each way in which tensors are wrong."""
    del settings
    gguf = companion.gguf
    for key, wanted in NAMED:
        if gguf.string(key) != wanted:
            yield _key(gguf, key, repr(wanted))
    if gguf.architecture is None:
        yield _key(gguf, "general.architecture", "the architecture of its model")
    for key in TEXTS:
        if key in gguf.fields and gguf.string(key) is None:
            yield _key(gguf, key, "a string")
    field = gguf.fields.get(INVOCATION)
    if field is not None and not (
        isinstance(field.value, Array) and field.value.item_type is ValueType.UINT32
    ):
        yield _key(gguf, INVOCATION, "an array of u32")
    yield from _alpha(gguf)
    found = pairs_of(gguf)
    yield from _tensors(found)
    if (
        EMBEDDING in found.pairs
        and OUTPUT not in found.pairs
        and isinstance(companion.base, Absent)
    ):
        yield Hit(
            message=f"llama.cpp aborts on a pair for {EMBEDDING} if the model's output is tied to it",
            where=Where(tensor=f"{EMBEDDING}.lora_a"),
            level=Severity.INFO,
        )


def _key(gguf: Gguf, key: str, wanted: str) -> Hit:
    field = gguf.fields.get(key)
    return Hit(
        message=f"needs {wanted}, {key} {_how(field)}",
        where=Where(key=key, offset=None if field is None else field.offset),
        expected=wanted.strip("'"),
        actual=None if field is None or isinstance(field.value, Array) else field.value,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _how(field: Field | None) -> str:
    if field is None:
        return "is absent"
    return f"is {type_name(field) if isinstance(field.value, Array) else repr(field.value)}"


def _alpha(gguf: Gguf) -> Iterator[Outcome]:
    field = gguf.fields.get(ALPHA)
    if field is not None and field.type is not ValueType.FLOAT32:
        yield _key(gguf, ALPHA, "an f32")
    elif field is None or not field.value:
        how = "is absent" if field is None else "is 0"
        yield Hit(
            message=f"needs the adapter's alpha, {ALPHA} {how}: llama.cpp adds it at full size",
            where=Where(key=ALPHA, offset=None if field is None else field.offset),
            actual=None if field is None else field.value,
            level=Severity.WARNING,
            repair=Reconvert(),
        )


def _tensors(found: Pairs) -> Iterator[Outcome]:
    if not found.pairs:
        yield _lost("needs pairs of lora_a and lora_b, the file has none", ())
    halves = [
        f"{name}.lora_{'a' if pair.a is None else 'b'}"
        for name, pair in found.pairs.items()
        if pair.a is None or pair.b is None
    ]
    if halves:
        yield _lost(f"pairs need both halves, {listed(halves)} not in the file", halves)
    if found.odd:
        wanted = "lora_a, lora_b or a norm"
        yield _lost(f"needs {wanted}, llama.cpp refuses {listed(found.odd)}", found.odd)
    uneven = [name for name, pair in found.pairs.items() if _uneven(name, pair)]
    if uneven:
        yield _lost(
            f"both halves of a pair need one rank, they differ for {listed(uneven)}", uneven
        )


def _uneven(name: str, pair: Pair) -> bool:
    if pair.a is None or pair.b is None:
        return False
    a = (*pair.a.shape, 1)
    return (a[0] if name.endswith(EMBEDDING) else a[1]) != pair.rank


def _lost(message: str, names: tuple[str, ...] | list[str]) -> Hit:
    return Hit(
        message=message,
        where=Where(tensor=names[0] if names else None),
        actual=list(names),
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="PKG040",
    name="adapter-unloadable",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnCompanion(check, kinds=("adapter",)),
    defers_to=("PKG041",),
    authority="llama.cpp b11434 src/llama-adapter.cpp llama_adapter_lora_init_impl, get_scale",
)

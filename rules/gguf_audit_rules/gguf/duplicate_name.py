"""Two tensors, or two metadata keys, have the same name.

## What it does
Looks for names and keys that occur more than once, over all shards of a set. Each shard of
a set repeats `split.*` and `general.architecture` by right.

## Why it matters
llama.cpp refuses the file. Other readers take the first or the last, so two engines run two
different models.

## Fix
Reconvert, or merge the set again from its original shards.

## Authority
llama.cpp b11434, `ggml/src/gguf.cpp: gguf_init_from_reader` (`duplicated key`, `duplicated
tensor name`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each name that is taken twice."""
    del settings
    for file in model.gguf.files:
        seen: set[str] = set()
        told: set[str] = set()
        for field in file.fields:
            if field.key in seen and field.key not in told:
                told.add(field.key)
                yield Hit(
                    message=f"needs each key once, {field.key} is there again",
                    where=Where(file=file.name, key=field.key, offset=field.offset),
                    expected=1,
                    actual=sum(other.key == field.key for other in file.fields),
                    level=Severity.ERROR,
                    repair=Reconvert(),
                )
            seen.add(field.key)
    yield from _tensors(model)


def _tensors(model: Model) -> Iterator[Outcome]:
    first: dict[str, str] = {}
    told: set[str] = set()
    for file in model.gguf.files:
        for tensor in file.tensors:
            if tensor.name in first and tensor.name not in told:
                told.add(tensor.name)
                yield Hit(
                    message=f"needs each tensor once, {tensor.name} is in "
                    f"{first[tensor.name]} and again in {file.name}",
                    where=Where(file=file.name, tensor=tensor.name, offset=tensor.info_offset),
                    expected=1,
                    actual=2,
                    level=Severity.ERROR,
                    repair=Reconvert(),
                )
            first.setdefault(tensor.name, file.name)


RULE = Rule(
    id="GGUF003",
    name="duplicate-name",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    authority="llama.cpp b11434 ggml/src/gguf.cpp gguf_init_from_reader",
)

"""Two tensors, or two metadata keys, have the same name.

## What it does
Looks for metadata keys that occur more than once in one file, and for tensor names that do
over all shards of a set. Each shard of a set repeats keys such as `split.no` by right.

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

from collections import Counter
from collections.abc import Iterator, Sequence

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import FileFacts
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

SHOWN = 5


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file's keys, and one for the tensors."""
    del settings
    for file in model.gguf.files:
        yield from _keys(file)
    yield from _tensors(model)


def _keys(file: FileFacts) -> Iterator[Outcome]:
    counts = Counter(field.key for field in file.fields)
    twice = [key for key, count in counts.items() if count > 1]
    if not twice:
        return
    again = [field for field in file.fields if field.key == twice[0]][1]
    yield Hit(
        message=f"needs each key once, {twice[0]} is there again{_more(twice)}",
        where=Where(file=file.name, key=again.key, offset=again.offset),
        expected=1,
        actual=counts[again.key],
        unit="time",
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _tensors(model: Model) -> Iterator[Outcome]:
    files = model.gguf.files
    tensors = [tensor for file in files for tensor in file.tensors]
    counts = Counter(tensor.name for tensor in tensors)
    twice = [name for name, count in counts.items() if count > 1]
    if not twice:
        return
    first, again = [tensor for tensor in tensors if tensor.name == twice[0]][:2]
    yield Hit(
        message=f"needs each tensor once, {first.name} is in {files[first.file].name} and "
        f"again in {files[again.file].name}{_more(twice)}",
        where=Where(file=files[again.file].name, tensor=again.name, offset=again.info_offset),
        expected=1,
        actual=counts[again.name],
        unit="time",
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _more(names: Sequence[str]) -> str:
    """Say what else is double: a hostile file may have thousands of them."""
    if len(names) == 1:
        return ""
    rest = "" if len(names) <= SHOWN else f" (and {len(names) - SHOWN} more)"
    return ", as are " + ", ".join(names[1:SHOWN]) + rest


RULE = Rule(
    id="GGUF003",
    name="duplicate-name",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    any_kind=True,
    authority="llama.cpp b11434 ggml/src/gguf.cpp gguf_init_from_reader",
)

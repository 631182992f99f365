"""A metadata value is an array of arrays.

## What it does
Looks for arrays whose items are arrays, under any key of any shard.

## Why it matters
The format has them and gguf-py reads them; llama.cpp knows no such type and refuses the whole
file, whatever the key.

## Fix
Write the value as one array, or as a JSON text, or take the key out: `gguf-new-metadata
--remove-metadata KEY IN OUT`.

## Authority
llama.cpp b11434, `ggml/src/gguf.cpp: gguf_init_from_reader` (`invalid GGUF type`); ggml,
docs/gguf.md (arrays can be nested).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Array, ValueType
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key with such an array."""
    del settings
    for file in model.gguf.files:
        for field in file.fields:
            if isinstance(field.value, Array) and field.value.item_type is ValueType.ARRAY:
                yield Hit(
                    message=f"needs an array of numbers or texts, {field.key} is an array of "
                    f"{field.value.count:,} arrays: llama.cpp refuses the file",
                    where=Where(file=file.name, key=field.key, offset=field.offset),
                    expected="an array of numbers or texts",
                    actual="an array of arrays",
                    origin=Origin.KEY,
                    level=Severity.ERROR,
                    repair=Reconvert(
                        hint=f"without {field.key}; gguf-new-metadata --remove-metadata"
                    ),
                )


RULE = Rule(
    id="GGUF010",
    name="array-nested",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    any_kind=True,
    authority="llama.cpp b11434 ggml/src/gguf.cpp gguf_init_from_reader",
)

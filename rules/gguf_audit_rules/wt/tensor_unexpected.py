"""The file has a tensor that llama.cpp has no place for.

## What it does
Compares the names in the file with every name that llama.cpp would ask for by the metadata,
optional ones included. Scales beside a quantized tensor belong to it.

## Why it matters
llama.cpp counts what it has used: one tensor that is left over and it doesn't load the model
(`wrong number of tensors`). The name is misspelt, belongs to another architecture or to a
newer llama.cpp, or a key is lost that calls for it.

## Fix
Reconvert, with a converter as old as the llama.cpp that is to run the file.

## Authority
llama.cpp b11434, `src/llama-model-loader.cpp: done_getting_tensors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gguf_audit.errors import Refused
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.subject import Absent
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import listed, places

BLOCK = re.compile(r"blk\.([0-9]{1,9})\.")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for blocks too many, one for all else that has no place."""
    del settings
    inventory = places(model)
    if isinstance(inventory, Absent):
        return  # tensor-missing has said why
    homeless = inventory.homeless(model.gguf.tensors)
    end = _integer(model, "block_count")
    beyond = [name for name in homeless if end is not None and _block(name) >= end]
    if beyond:
        # more blocks than the metadata says: that key's cause, if anybody tells it
        yield _hit(model, beyond, key=model.fields.key("block_count"))
    told = frozenset(beyond)
    rest = [name for name in homeless if name not in told]
    if rest:
        yield _hit(model, rest)


def _integer(model: Model, key: str) -> int | None:
    """Read a key whose wrong type is another rule's cause."""
    try:
        return model.fields.integer(key)
    except Refused:
        return None


def _block(name: str) -> int:
    found = BLOCK.match(name)
    return -1 if found is None else int(found[1])


def _hit(model: Model, names: Sequence[str], key: str | None = None) -> Hit:
    tensor = model.gguf.tensors[names[0]]
    return Hit(
        message=f"llama.cpp b11434 has no place for {listed(names)} in a model of this "
        "architecture and metadata: it won't load",
        where=Where(key=key, tensor=tensor.name, offset=tensor.info_offset),
        expected=[],
        actual=list(names),
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="WT002",
    name="tensor-unexpected",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("ARCH002", "ARCH003", "WT001"),
    authority="llama.cpp b11434 src/llama-model-loader.cpp done_getting_tensors",
)

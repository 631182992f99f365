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

from gguf_audit.arch.tensors import Inventory, Slot, same_shape
from gguf_audit.evidence import Model, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules._fields import integer
from gguf_audit_rules.wt._tensors import NAMED, SHAPING, going_by, listed, places

BLOCK = re.compile(r"blk\.([0-9]{1,9})\.")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for blocks too many, one for drafts, one for all else."""
    del settings
    inventory = places(model)
    if isinstance(inventory, Absent):
        return  # tensor-missing has said why
    homeless = inventory.homeless(model.gguf.tensors)
    by_key: dict[str | None, list[str]] = {}
    for name in homeless:
        by_key.setdefault(_key(model, _block(name)), []).append(name)
    for key, names in by_key.items():
        yield _hit(model, inventory, names, key=key)


def _key(model: Model, block: int) -> str | None:
    """Return the number of blocks that says there is no such block, if one does.

    That is the key's cause, if anybody tells it.
    """
    fields = model.fields
    blocks, drafts = integer(fields, "block_count"), integer(fields, "nextn_predict_layers")
    if blocks is None or block < blocks - (drafts or 0):
        return None
    return fields.key("block_count" if block >= blocks else "nextn_predict_layers")


def _block(name: str) -> int:
    found = BLOCK.match(name)
    return -1 if found is None else int(found[1])


def _likely(model: Model, inventory: Inventory, names: Sequence[str]) -> Iterator[str]:
    """Yield the places that may be meant: empty ones of that shape, and what is missing."""
    there = model.gguf.tensors
    empty: dict[int | None, list[Slot]] = {}
    for slot in inventory.slots.values():
        if slot.name not in there:
            empty.setdefault(slot.layer, []).append(slot)
    for name in names[:NAMED]:
        block = _block(name)
        for slot in empty.get(None if block < 0 else block, ()):
            if same_shape(slot, there[name].shape):
                yield slot.name
    yield from (slot.name for slot in inventory.missing(there)[:NAMED])


def _hit(model: Model, inventory: Inventory, names: Sequence[str], key: str | None) -> Hit:
    tensor = model.gguf.tensors[names[0]]
    return Hit(
        message=f"llama.cpp b11434 has no place for {listed(names)} in a model of this "
        "architecture and metadata: it won't load",
        where=Where(key=key, tensor=tensor.name, offset=tensor.info_offset),
        expected=[],
        actual=list(names),
        level=Severity.ERROR,
        repair=Reconvert(),
        also=(*going_by(model, names), *_likely(model, inventory, names)),
    )


RULE = Rule(
    id="WT002",
    name="tensor-unexpected",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=(*SHAPING, "ARCH008", "ARCH009", "CTX005", "WT001", "WT004"),
    authority="llama.cpp b11434 src/llama-model-loader.cpp done_getting_tensors",
)

"""A tensor is missing without which llama.cpp doesn't load the model.

## What it does
Makes, from the metadata alone, the list of tensors that llama.cpp asks for: for the whole
model and for each block, whether it has attention, a recurrent state, experts or a dense
feed-forward part. Whatever llama.cpp does without is never on it: biases, scales, an output
projection that may be tied, blocks of multi-token prediction that were left out.

## Why it matters
llama.cpp stops at the first of them: `missing tensor`. A block of the model that passes for
one of prediction is left out, and nothing is printed.

## Fix
Reconvert, or fetch the file again: no metadata tool can add a tensor.

## Authority
llama.cpp b11434, `load_arch_tensors` in `src/models/*.cpp`, `src/llama-model-loader.cpp:
create_tensor`; what it creates was enumerated and compared for 147 architectures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gguf_audit.arch.tensors import Slot
from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import NAMED, SHAPING, going_by, listed, places

BLOCK = re.compile(r"(?:enc\.|dec\.)?blk\.([0-9]{1,9})\.")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit each for blocks that aren't there, for all else, for misjudged blocks."""
    del settings
    inventory = places(model)
    if isinstance(inventory, Absent):
        if inventory.reason:
            yield NoEvidence(inventory.reason)
        return
    missing = inventory.missing(model.gguf.tensors)
    end = _blocks(model)
    beyond = [slot for slot in missing if _beyond(slot, end)]
    if beyond:
        # fewer blocks than the metadata says: that key's cause, if anybody tells it
        yield _hit(model, beyond, key=model.fields.key("block_count"))
    rest = [slot for slot in missing if not _beyond(slot, end)]
    if rest:
        yield _hit(model, rest)
    if inventory.headless:
        yield _headless(model, inventory.headless)


def _blocks(model: Model) -> int:
    """Return how many blocks have tensors, counted to the last one."""
    found = (BLOCK.match(name) for name in model.gguf.tensors)
    return max((int(match[1]) + 1 for match in found if match), default=0)


def _beyond(slot: Slot, end: int) -> bool:
    return slot.layer is not None and slot.layer >= end


def _blocks_keys(model: Model, missing: Sequence[Slot]) -> tuple[str, ...]:
    """Return the numbers of blocks, where blocks are missing altogether."""
    there = {match[0] for name in model.gguf.tensors if (match := BLOCK.match(name))}
    if any((match := BLOCK.match(slot.name)) is None or match[0] in there for slot in missing):
        return ()
    return tuple(map(model.fields.key, ("block_count", "nextn_predict_layers")))


def _hit(model: Model, missing: Sequence[Slot], key: str | None = None) -> Hit:
    names = [slot.name for slot in missing]
    return Hit(
        message=f"llama.cpp needs {listed(names)}, absent from the file: it won't load",
        where=Where(key=key, tensor=names[0], layer=missing[0].layer),
        expected=names,
        actual=[],
        level=Severity.ERROR,
        repair=Reconvert(),
        also=(*_blocks_keys(model, missing), *going_by(model, names)),
    )


def _headless(model: Model, blocks: Sequence[int]) -> Hit:
    """Return the hit for blocks of the trunk that are taken for drafts."""
    key = model.fields.key("nextn_predict_layers")
    names = [f"blk.{block}.nextn.eh_proj.weight" for block in blocks]
    return Hit(
        message=f"needs {listed(names)} in what {key} makes a block that predicts further "
        "tokens, absent although the block has other tensors: llama.cpp leaves the block out "
        "and says nothing",
        where=Where(key=key, tensor=names[0], layer=blocks[0]),
        expected=names,
        actual=[],
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(hint="or lower the key, if the block belongs to the trunk"),
        also=(model.fields.key("block_count"), *names[:NAMED]),
    )


RULE = Rule(
    id="WT001",
    name="tensor-missing",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=(*SHAPING, "ARCH008", "ARCH009"),
    authority="llama.cpp b11434 src/models/*.cpp load_arch_tensors, "
    "src/llama-model-loader.cpp create_tensor",
)

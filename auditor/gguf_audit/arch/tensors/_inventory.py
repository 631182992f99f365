"""The tensors that llama.cpp creates for a model, by its metadata.

Facts from llama.cpp build 11434: ``load_arch_tensors`` of every src/models/*.cpp, and
``create_tensor``, ``check_tensor_dims`` and ``done_getting_tensors`` in
src/llama-model-loader.cpp: what is required must be there, what is there must have its
place and its shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

from msgspec import Struct

from gguf_audit.arch._model import read_hyper
from gguf_audit.arch.tensors._expressions import parse
from gguf_audit.arch.tensors._sizes import ANY, KEYS, Sizes
from gguf_audit.arch.tensors._tables import Row, rows_of
from gguf_audit.fields import Fields
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent

__all__ = ["Inventory", "Slot", "inventory", "same_shape"]

#: In front of the tensors of a block.
BLOCKS = {"each": "blk", "encoder": "enc.blk", "decoder": "dec.blk"}

#: By this a block that predicts further tokens is known (``mtp_probe`` in src/models/*.cpp).
HEAD = "nextn.eh_proj.weight"


class Slot(Struct, frozen=True, kw_only=True):
    """A place for one tensor in a model."""

    name: str
    #: ``ne`` of ggml, ``None`` for a dimension that metadata can't tell; empty where
    #: nothing is known of the shape.
    shape: tuple[int | None, ...]
    #: llama.cpp doesn't load the model without it.
    required: bool
    #: llama.cpp takes any shape of as many elements.
    any_shape: bool = False
    #: Block that it belongs to.
    layer: int | None = None
    #: An expression for each dimension.
    sizes: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str | None, ...]:
        """The key that tells each dimension, without prefix; ``None`` for a computed one."""
        return tuple(KEYS.get(size) for size in self.sizes)


class Inventory(Struct, frozen=True, kw_only=True):
    """Every place for a tensor that a model has."""

    slots: Mapping[str, Slot]
    #: Blocks that are there and are taken for predicting further tokens, without what every
    #: such block begins with. llama.cpp leaves them out.
    headless: tuple[int, ...] = ()

    def missing(self, present: Iterable[str]) -> tuple[Slot, ...]:
        """Return the required places that nothing fills, block by block."""
        there = frozenset(present)
        empty = [slot for slot in self.slots.values() if slot.required and slot.name not in there]
        return tuple(sorted(empty, key=lambda slot: -1 if slot.layer is None else slot.layer))

    def homeless(self, present: Iterable[str]) -> tuple[str, ...]:
        """Return the tensors for which there is no place."""
        return tuple(name for name in present if name not in self.slots and not is_scale(name))


def is_scale(name: str) -> bool:
    """Tell whether a tensor scales another one; every projection may have such."""
    return name.endswith((".scale", ".input_scale"))


def same_shape(slot: Slot, shape: tuple[int, ...]) -> bool:
    """Tell whether a tensor has the shape of its place, as llama.cpp compares them.

    Dimensions of 1 at the end don't count (``check_tensor_dims``).
    """
    if not slot.shape:
        return True
    if slot.any_shape and None not in slot.shape:
        return math.prod(size or 0 for size in slot.shape) == math.prod(shape)
    return all(
        want is None or want == have for want, have in zip_longest(slot.shape, shape, fillvalue=1)
    )


def inventory(fields: Fields, layout: CacheLayout, present: Iterable[str]) -> Inventory | Absent:
    """Return every place for a tensor that llama.cpp makes for this metadata.

    ``layout`` is what it keeps for it. ``present`` are the names in the file: which of two
    forms of a tensor is wanted may depend on what is there. Absent where the architecture's
    tensors aren't known. Raises Refused where llama.cpp refuses a number's type.
    """
    rows = rows_of(fields.architecture)
    if rows is None:
        return Absent(f"the tensors of {fields.architecture!r} aren't known")
    return _Maker(Sizes(fields, read_hyper(fields), layout), frozenset(present)).make(rows)


class _Maker:
    """Fills the rows of a table with the sizes of one model."""

    def __init__(self, sizes: Sizes, present: frozenset[str]) -> None:
        self.sizes = sizes
        self.present = present
        self.slots: dict[str, Slot] = {}
        self.drafts = False
        hyper = sizes.hyper
        self.trunk_only = hyper.trunk < hyper.blocks and not self._has(
            range(hyper.trunk, hyper.blocks), HEAD
        )
        # what --mtp converts: the drafts alone, beside the target model
        self.drafts_only = hyper.trunk < hyper.blocks and not self._has((0,), "attn_norm.weight")
        #: Values of names -> the slots that one row has with them.
        self._known: dict[tuple[int, tuple[int, ...]], _Filled | None] = {}

    def _has(self, blocks: Iterable[int], name: str) -> bool:
        return any(f"blk.{block}.{name}" in self.present for block in blocks)

    def make(self, rows: tuple[Row, ...]) -> Inventory:
        self.drafts = any("draft" in row.condition for row in rows)
        for number, row in enumerate(rows):
            if row.scope == "model":
                self._fill(number, row, "", 0, None)
                continue
            for block in range(self._blocks(row)):
                self._fill(number, row, f"{BLOCKS[row.scope]}.{block}.", block, block)
        return Inventory(slots=self.slots, headless=tuple(self._headless(rows)))

    def _headless(self, rows: tuple[Row, ...]) -> Iterator[int]:
        if not self.trunk_only or not any(row.name == HEAD and row.required for row in rows):
            return
        for block in range(self.sizes.hyper.trunk, self.sizes.hyper.blocks):
            if any(name.startswith(f"blk.{block}.") for name in self.present):
                yield block

    def _blocks(self, row: Row) -> int:
        if row.scope == "decoder":
            count = self.sizes.fields.integer("decoder_block_count")
            if count is not None:
                return min(count, self.sizes.hyper.blocks)
        # who has no place for drafts looks at the trunk only
        return self.sizes.hyper.blocks if self.drafts else self.sizes.hyper.trunk

    def _fill(self, number: int, row: Row, prefix: str, block: int, layer: int | None) -> None:
        filled = self._filled(number, row, prefix, block)
        if filled is None:
            return
        name = prefix + row.name
        required = row.required and not self._excused(row, block, layer)
        known = self.slots.get(name)
        if known is not None and known.required:
            return
        self.slots[name] = Slot(
            name=name,
            shape=filled.shape,
            required=required,
            any_shape=row.any_shape,
            layer=layer,
            sizes=row.sizes,
        )

    def _excused(self, row: Row, block: int, layer: int | None) -> bool:
        """Tell whether llama.cpp does without the half of the model that this is in."""
        if layer is not None and self.sizes.draft(block):
            # create_tensor_qkv and create_tensor_gate_up_exps ask for nothing in blocks
            # that aren't going to run, whichever form their tensors have
            return self.trunk_only or "!@" in row.condition
        return self.drafts_only

    def _filled(self, number: int, row: Row, prefix: str, block: int) -> _Filled | None:
        names = _names(row)
        there = {name for name in names if name.startswith("@")}
        values = self.sizes.of(block, names - there)
        for name in there:
            values[name] = int(f"{prefix}{name[1:]}.weight" in self.present)
        key = (number, tuple(values[name] for name in sorted(values)))
        if key not in self._known:
            self._known[key] = _compute(row, values)
        return self._known[key]


class _Filled(Struct, frozen=True):
    """The shape of a row whose condition holds."""

    shape: tuple[int | None, ...]


def _names(row: Row) -> frozenset[str]:
    sizes = (parse(size).names for size in row.sizes if not _any(size))
    condition = parse(row.condition).names if row.condition else frozenset[str]()
    return condition.union(*sizes)


def _any(size: str) -> bool:
    return size == "_" or not ANY.isdisjoint(parse(size).names)


def _compute(row: Row, values: Mapping[str, int]) -> _Filled | None:
    if row.condition and not parse(row.condition).compute(values):
        return None
    return _Filled(tuple(None if _any(size) else parse(size).compute(values) for size in row.sizes))

"""A tensor has another shape than the metadata calls for.

## What it does
Computes the shape that llama.cpp asks for, tensor by tensor, and compares. Where the size
that differs is the number of one key, the finding names the key; the embedding length, the
number of blocks, heads and their lengths are metadata-shape-mismatch's, the rows of the
vocabulary vocabulary-size-mismatch's. A classifier's head has as many rows as
`classifier.output_labels` has labels, one where there are none.

## Why it matters
llama.cpp doesn't load the model: `tensor has wrong shape`.

## Fix
Trust the tensors: set the key if all of them agree, else reconvert.

## Authority
llama.cpp b11434, `src/llama-model-loader.cpp: check_tensor_dims`; `load_arch_tensors` in
`src/models/*.cpp`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from gguf_audit.arch import tensors as made
from gguf_audit.arch.tensors import Slot, same_shape
from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Fields, Origin
from gguf_audit.gguf import Tensor
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Repair, Rule, SetKey, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import NAMED, SHAPING, listed, places

LABELS = "classifier.output_labels"
#: conversion/bert.py takes two labels, the first called ``LABEL_0``, for ones that nobody made.
NAMELESS = "give its two labels names of their own in id2label, the converter drops LABEL_0"


class _Misfit(Struct, frozen=True, kw_only=True):
    """A tensor that doesn't fit its place."""

    slot: Slot
    tensor: Tensor
    #: Keys, in full, any of which could make it fit.
    suspects: tuple[str, ...]

    @property
    def size(self) -> tuple[str, int] | None:
        """The key, without prefix, that is a wrong size itself, and the size it has."""
        wrong = _wrong(self.slot, self.tensor)
        if len(wrong) != 1:
            return None
        [index] = wrong
        key = self.slot.keys[index] if self.slot.keys else None
        return None if key is None else (key, self.tensor.shape[index])


class _Cause(Struct, frozen=True, kw_only=True):
    """Tensors that don't fit for one reason."""

    #: In full; ``None`` where it isn't one key that is wrong.
    key: str | None
    misfits: tuple[_Misfit, ...]


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key that explains misfits, one for the other tensors."""
    del settings
    inventory = places(model)
    if isinstance(inventory, Absent):
        return  # tensor-missing has said why
    fit: list[Slot] = []
    misfits: list[_Misfit] = []
    for name, tensor in model.gguf.tensors.items():
        slot = inventory.slots.get(name)
        if slot is None:
            continue
        if same_shape(slot, tensor.shape):
            fit.append(slot)
        else:
            suspects = _suspects(slot, tensor, model.fields)
            misfits.append(_Misfit(slot=slot, tensor=tensor, suspects=suspects))
    for cause in _causes(misfits, fit, model.fields) if misfits else ():
        yield _hit(model, cause)


def _wrong(slot: Slot, tensor: Tensor) -> list[int]:
    """Return which dimensions differ; none where their number does, or doesn't count."""
    if slot.any_shape or len(slot.shape) != len(tensor.shape):
        return []
    return [
        index
        for index, (want, have) in enumerate(zip(slot.shape, tensor.shape, strict=True))
        if want not in (None, have)
    ]


def _suspects(slot: Slot, tensor: Tensor, fields: Fields) -> tuple[str, ...]:
    shaped = made.shaping(slot, fields)
    wrong = [shaped[index] for index in _wrong(slot, tensor)] if shaped else []
    if not wrong:
        return tuple(dict.fromkeys(key for keys in shaped for key in keys))
    return tuple(key for key in wrong[0] if all(key in keys for keys in wrong))


def _causes(misfits: Sequence[_Misfit], fit: Sequence[Slot], fields: Fields) -> Iterator[_Cause]:
    """Yield the fewest keys that explain all misfits, and what none explains."""
    left: list[_Misfit] = [*misfits]
    cleared = _cleared(fit, fields)
    while left:
        told = Counter(key for misfit in left for key in misfit.suspects if key not in cleared)
        sizes = {fields.key(misfit.size[0]) for misfit in left if misfit.size is not None}
        if not told:
            yield _Cause(key=None, misfits=tuple(left))
            return
        # what is a size itself goes before what is only computed with
        key = max(told, key=lambda key: (told[key], key in sizes))
        explained = tuple(misfit for misfit in left if key in misfit.suspects)
        alike = [other for other in told if all(other in each.suspects for each in explained)]
        yield _Cause(key=key if key in sizes or len(alike) == 1 else None, misfits=explained)
        left = [each for each in left if key not in each.suspects]


def _cleared(fit: Sequence[Slot], fields: Fields) -> frozenset[str]:
    """Return the keys that tensors agree with: none of these is what went wrong."""
    shapes = {slot.sizes: slot for slot in fit}
    told = (keys for slot in shapes.values() for keys in made.shaping(slot, fields))
    return frozenset(keys[0] for keys in told if len(keys) == 1)


def _hit(model: Model, cause: _Cause) -> Hit:
    key, misfits = cause.key, cause.misfits
    first = misfits[0]
    others = len(misfits) - 1
    whose = f", as do {others} more tensors" if others > 1 else ", as does one more tensor"
    whose = whose if others else ""
    because = "" if key is None else f" by {key}"
    return Hit(
        message=(
            f"needs {first.tensor.name} of shape {_shown(first.slot.shape)}{because}, it has "
            f"{list(first.tensor.shape)}{whose}: llama.cpp won't load the file"
        ),
        where=Where(
            key=key,
            tensor=first.tensor.name,
            layer=first.slot.layer,
            offset=first.tensor.info_offset,
        ),
        expected=_shown(first.slot.shape),
        actual=list(first.tensor.shape),
        origin=None if key is None else _origin(model, key),
        level=Severity.ERROR,
        repair=_repair(model, cause),
        consequences=(f"the others: {listed(m.tensor.name for m in misfits[1:])}",)
        if others
        else (),
        also=(*_others(cause), *(misfit.tensor.name for misfit in misfits[:NAMED])),
    )


def _others(cause: _Cause) -> Iterator[str]:
    found = dict.fromkeys(key for misfit in cause.misfits for key in misfit.suspects)
    return (key for key in found if key != cause.key)


def _origin(model: Model, key: str) -> Origin:
    return Origin.KEY if key in model.gguf.fields else Origin.RUNTIME_DEFAULT


def _repair(model: Model, cause: _Cause) -> Repair:
    """Set the key where it is the size that all tensors have in its place."""
    sizes = {
        size[1]
        for misfit in cause.misfits
        if (size := misfit.size) is not None and model.fields.key(size[0]) == cause.key
    }
    field = None if cause.key is None else model.gguf.fields.get(cause.key)
    if field is None and cause.key == model.fields.key(LABELS):
        rows = {misfit.tensor.shape[-1] for misfit in cause.misfits}
        return Reconvert(hint=NAMELESS if rows == {2} else "")
    if cause.key is None or field is None or len(sizes) != 1 or type(field.value) is not int:
        return Reconvert()
    return SetKey(key=cause.key, value=sizes.pop(), present=True)


def _shown(shape: tuple[int | None, ...]) -> list[int | str]:
    return ["any" if size is None else size for size in shape]


RULE = Rule(
    id="WT003",
    name="tensor-shape-mismatch",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=(*SHAPING, "GGUF004", "WT002"),
    authority="llama.cpp b11434 src/llama-model-loader.cpp check_tensor_dims, "
    "src/models/*.cpp load_arch_tensors",
)

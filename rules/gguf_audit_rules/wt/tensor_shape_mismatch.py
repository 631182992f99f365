"""A tensor has another shape than the metadata calls for.

## What it does
Computes the shape that llama.cpp asks for, tensor by tensor, and compares. Where the size
that differs is the number of one key, the finding names the key; the embedding length, the
number of blocks, heads and their lengths are metadata-shape-mismatch's, the rows of the
vocabulary vocabulary-size-mismatch's.

## Why it matters
llama.cpp doesn't load the model: `tensor has wrong shape`.

## Fix
Trust the tensors: set the key if all of them agree, else reconvert.

## Authority
llama.cpp b11434, `src/llama-model-loader.cpp: check_tensor_dims`; `load_arch_tensors` in
`src/models/*.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gguf_audit.arch.tensors import Slot, same_shape
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Repair, Rule, SetKey, Severity
from gguf_audit.subject import Absent, Origin, Tensor
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import listed, places


@dataclass(frozen=True, slots=True, kw_only=True)
class _Misfit:
    """A tensor that doesn't fit its place."""

    slot: Slot
    tensor: Tensor

    def key(self) -> tuple[str, int] | None:
        """Return the key that would have to be another number, and which one."""
        wrong = [
            (key, have)
            for key, want, have in zip(
                self.slot.keys, self.slot.shape, self.tensor.shape, strict=False
            )
            if want is not None and want != have
        ]
        if len(wrong) != 1 or len(self.tensor.shape) != len(self.slot.shape):
            return None
        [(key, size)] = wrong
        return None if key is None else (key, size)


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key that all shapes contradict, one for the other tensors."""
    del settings
    inventory = places(model)
    if isinstance(inventory, Absent):
        return  # tensor-missing has said why
    by_key: dict[str | None, list[_Misfit]] = {}
    fit: set[str | None] = set()
    for name, tensor in model.gguf.tensors.items():
        slot = inventory.slots.get(name)
        if slot is None:
            continue
        if same_shape(slot, tensor.shape):
            fit.update(slot.keys)
        else:
            misfit = _Misfit(slot=slot, tensor=tensor)
            found = misfit.key()
            by_key.setdefault(None if found is None else found[0], []).append(misfit)
    # a key that some tensors agree with isn't what went wrong
    single = [m for key in [*by_key] if key is None or key in fit for m in by_key.pop(key)]
    for key, misfits in by_key.items():
        yield _hit(model, key, misfits)
    if single:
        yield _hit(model, None, single)


def _hit(model: Model, key: str | None, misfits: Sequence[_Misfit]) -> Hit:
    first = misfits[0]
    full_key = None if key is None else model.fields.key(key)
    others = len(misfits) - 1
    whose = f", as do {others} more tensors" if others else ""
    because = "" if full_key is None else f" by {full_key}"
    return Hit(
        message=(
            f"needs {first.tensor.name} of shape {_shown(first.slot.shape)}{because}, it has "
            f"{list(first.tensor.shape)}{whose}: llama.cpp won't load the file"
        ),
        where=Where(
            key=full_key,
            tensor=first.tensor.name,
            layer=first.slot.layer,
            offset=first.tensor.info_offset,
        ),
        expected=_shown(first.slot.shape),
        actual=list(first.tensor.shape),
        origin=None if key is None else _origin(model, key),
        level=Severity.ERROR,
        repair=_repair(model, key, misfits),
        consequences=(f"the others: {listed(m.tensor.name for m in misfits[1:])}",)
        if others
        else (),
    )


def _origin(model: Model, key: str) -> Origin:
    return Origin.KEY if key in model.fields else Origin.RUNTIME_DEFAULT


def _repair(model: Model, key: str | None, misfits: Sequence[_Misfit]) -> Repair:
    sizes = {found[1] for misfit in misfits if (found := misfit.key()) is not None}
    field = None if key is None else model.fields.find(key)
    if key is None or field is None or len(sizes) != 1 or type(field.value) is not int:
        return Reconvert()
    return SetKey(key=model.fields.key(key), value=sizes.pop(), present=True)


def _shown(shape: tuple[int | None, ...]) -> list[int | str]:
    return ["any" if size is None else size for size in shape]


RULE = Rule(
    id="WT003",
    name="tensor-shape-mismatch",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("ARCH002", "ARCH003", "ARCH006", "GGUF004", "KV106"),
    authority="llama.cpp b11434 src/llama-model-loader.cpp check_tensor_dims, "
    "src/models/*.cpp load_arch_tensors",
)

"""The tensors of the model that a companion goes with."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from gguf_audit import arch
from gguf_audit.arch import tensors as made
from gguf_audit.errors import AuditError
from gguf_audit.evidence import Companion
from gguf_audit.parts import Absent

__all__ = ["Base", "at", "base_of", "sizes_differ"]


class Base(Struct, frozen=True, kw_only=True):
    """Which tensors a model has, and how big they are, as far as that is known."""

    architecture: str
    #: ``ne``, ``None`` for what isn't known; of an optional tensor too.
    shape: Callable[[str], tuple[int | None, ...] | None]
    #: Whether it has a tensor: ``None`` where nobody knows.
    has: Callable[[str], bool | None]


def base_of(companion: Companion, wanted: Iterable[str]) -> Base | Absent:
    """Return the model that a companion goes with; ``wanted`` are the tensors asked about."""
    fields, checkpoint = companion.base, companion.checkpoint
    if isinstance(fields, Absent):
        return fields
    if isinstance(checkpoint, Absent):
        return checkpoint
    if checkpoint.gguf is not None:
        tensors = checkpoint.gguf.tensors
        return Base(
            architecture=fields.architecture,
            shape=lambda name: tensors[name].shape if name in tensors else None,
            has=lambda name: name in tensors,
        )
    try:
        places = made.inventory(fields, arch.implied_layout(fields), frozenset(wanted))
        stored = checkpoint.tensors
        becomes = stored if isinstance(stored, Absent) else made.converted(fields, stored)
    except AuditError as error:
        return Absent(error.message)
    if isinstance(places, Absent):
        return places
    slots = places.slots
    groups = () if isinstance(becomes, Absent) else becomes.groups
    written = frozenset(name for group in groups for name in group.names)

    def has(name: str) -> bool | None:
        if name not in slots:
            return False
        if written:
            return name in written
        return True if slots[name].required else None

    return Base(
        architecture=fields.architecture,
        shape=lambda name: slots[name].shape if name in slots else None,
        has=has,
    )


def sizes_differ(wanted: int | None, found: int) -> bool:
    """Tell whether a size is known and another."""
    return wanted is not None and wanted != found


def at(shape: tuple[int | None, ...], index: int) -> int | None:
    """Return a dimension, 1 where it isn't written down."""
    return shape[index] if index < len(shape) else 1

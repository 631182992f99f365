"""Names in a file that are not as names should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gguf_audit.gguf import FileFacts
from gguf_audit.where import Where

__all__ = ["Names", "odd_names"]


class Names(NamedTuple):
    """Keys, or names of tensors, with the same fault."""

    #: What they are, as a message goes on: ``keys``.
    what: str
    #: One or more, in file order.
    names: list[str]
    #: Place of the first.
    where: Where


def odd_names(file: FileFacts, is_odd: Callable[[str], bool]) -> Iterator[Names]:
    """Yield those keys of a file that are odd, then those names of tensors; each if there are any."""
    keys = [field for field in file.fields if is_odd(field.key)]
    if keys:
        where = Where(file=file.name, key=keys[0].key, offset=keys[0].offset)
        yield Names("keys", [field.key for field in keys], where)
    tensors = [tensor for tensor in file.tensors if is_odd(tensor.name)]
    if tensors:
        where = Where(file=file.name, tensor=tensors[0].name, offset=tensors[0].info_offset)
        yield Names("tensor names", [tensor.name for tensor in tensors], where)

"""What the rules of this family look at: the places for tensors, and the checkpoint's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from gguf_audit.arch import tensors as made
from gguf_audit.arch.tensors import Inventory, inventory
from gguf_audit.errors import Refused
from gguf_audit.evidence import Conversion, Model
from gguf_audit.gguf import Tensor
from gguf_audit.layout import CacheLayout
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent

if TYPE_CHECKING:
    from gguf_audit.arch.tensors import Comparison, Converted

__all__ = ["NAMED", "NOTHING", "SHAPING", "compared", "going_by", "listed", "places", "small"]

#: Rules that tell which key is wrong; tensors that don't fit then follow from it.
SHAPING = (
    "ARCH002",
    "ARCH003",
    "ARCH006",
    "CTX001",
    "CTX003",
    "CTX004",
    "KV102",
    "KV103",
    "KV104",
    "KV105",
    "KV106",
    "KV108",
)
#: Names of tensors that a hit goes by to another one about the same tensors.
NAMED = 32
#: Names that a message shows.
SHOWN = 4
#: Why there is nothing to look at, where another rule has said so or nobody needs to.
NOTHING = Absent("")

A = TypeVar("A")
R = TypeVar("R")


class Latest(Generic[A, R]):
    """A function that remembers what it made of its latest argument, told by identity.

    The rules of this family follow each other on one model and look at the same.
    """

    def __init__(self, function: Callable[[A], R]) -> None:
        self._function = function
        self._latest: tuple[A, R] | None = None

    def __call__(self, argument: A) -> R:
        """Return the function's result."""
        if self._latest is None or self._latest[0] is not argument:
            self._latest = (argument, self._function(argument))
        return self._latest[1]


def _places(model: Model) -> Inventory | Absent:
    if not model.gguf.tensors or not isinstance(model.implied, CacheLayout):
        return NOTHING
    try:
        return inventory(model.fields, model.implied, model.gguf.tensors)
    except Refused:
        return NOTHING


#: The places for tensors that llama.cpp makes for a model.
places: Callable[[Model], Inventory | Absent] = Latest(_places)


def _compared(conversion: Conversion) -> tuple[Converted, Comparison] | Absent:
    file = conversion.model.gguf.tensors
    fields, reference = conversion.expected_fields, conversion.checkpoint
    if not file or isinstance(fields, Absent):
        return NOTHING
    found: Converted | Absent
    if reference.gguf is not None:
        found = made.of_file(fields, reference.gguf.tensors)
    else:
        found = _converted(conversion)
    return found if isinstance(found, Absent) else (found, made.compare(found, file))


def _converted(conversion: Conversion) -> Converted | Absent:
    fields, tensors = conversion.expected_fields, conversion.checkpoint.tensors
    if isinstance(fields, Absent):
        return NOTHING
    if isinstance(tensors, Absent):
        # what a card lacks is said of the reference itself
        return NOTHING if conversion.checkpoint.origin == "card" else tensors
    try:
        return made.converted(fields, tensors)
    except Refused as refused:
        return Absent(refused.message)


#: What a checkpoint's tensors become, and what the file has of it.
compared: Callable[[Conversion], tuple[Converted, Comparison] | Absent] = Latest(_compared)


def going_by(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that decide whether these names have a place, and some of the names."""
    found = [made.placing(name, model.fields) for name in names]
    keys = [key for key in found[0] if all(key in each for each in found)] if found else []
    return (*keys, *names[:NAMED])


def listed(names: Iterable[str]) -> str:
    """Return the first few names, and how many there are beyond."""
    found: Sequence[str] = tuple(names)
    more = len(found) - SHOWN
    shown = ", ".join(found[:SHOWN])
    return shown if more <= 0 else f"{shown} and {more} more"


def small(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield those of which the values are looked at, the smallest first."""
    left = LIMITS.all_floats_bytes
    sizes = [(each.size_bytes, each) for each in tensors if each.size_bytes]
    sizes.sort(key=lambda each: each[0])
    for size, tensor in sizes[: LIMITS.floats_tensors]:
        left -= size
        if size > LIMITS.floats_bytes or left < 0:
            return
        yield tensor

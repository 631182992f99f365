"""What a model is made of: the tensors that llama.cpp wants, and those a checkpoint becomes.

Names and shapes only. ``inventory`` reads a file's own metadata; ``converted`` reads the
names and shapes of a checkpoint's tensors, ``of_file`` those of another file. What needs
a reference loads when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gguf_audit.arch.tensors._converted import (
        Changed,
        Comparison,
        Converted,
        Group,
        compare,
        converted,
        of_file,
    )
from gguf_audit.arch.tensors._inventory import Inventory, Slot, inventory, same_shape

__all__ = [
    "Changed",
    "Comparison",
    "Converted",
    "Group",
    "Inventory",
    "Slot",
    "compare",
    "converted",
    "inventory",
    "of_file",
    "same_shape",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gguf_audit.arch.tensors import _converted

    return getattr(_converted, name)

"""What a model is made of: the tensors that llama.cpp wants, and those a checkpoint becomes.

Names and shapes only. ``inventory`` reads a file's own metadata; ``converted`` reads the
names and shapes of a checkpoint's tensors, ``of_file`` those of another file. What needs
a reference, or a tensor that doesn't fit (``shaping``, ``placing``), loads when it is first
used.
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
        stand_ins,
    )
    from gguf_audit.arch.tensors._keys import placing, shaping
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
    "placing",
    "same_shape",
    "shaping",
    "stand_ins",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("placing", "shaping"):
        from gguf_audit.arch.tensors import _keys

        return getattr(_keys, name)
    from gguf_audit.arch.tensors import _converted

    return getattr(_converted, name)

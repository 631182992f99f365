"""What a model is made of: the tensors that llama.cpp wants, and those a checkpoint becomes.

Names and shapes only. ``inventory`` reads a file's own metadata; ``converted`` reads the
safetensors headers of a checkpoint.
"""

from gguf_audit.arch.tensors._inventory import Inventory, Slot, inventory, same_shape

__all__ = ["Inventory", "Slot", "inventory", "same_shape"]

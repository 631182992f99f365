"""MiniCPM3 and PLM: latent attention that llama.cpp keeps unpacked.

src/models/minicpm3.cpp and plm.cpp of llama.cpp build 11434: every head's key and value
is in the cache, 22 times the latent for MiniCPM3-4B.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

ARCHITECTURES = (
    Architecture(
        names=("minicpm3",),
        implied=plain(RMS, "attention.q_lora_rank", "attention.kv_lora_rank"),
    ),
    Architecture(names=("plm",), implied=plain(RMS, "attention.kv_lora_rank"), verified=False),
)

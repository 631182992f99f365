"""Qwen2 to Qwen3 with plain attention; a window in their configs is never used.

src/models/qwen2.cpp and its kin of llama.cpp build 11434.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

SECTIONS = "rope.dimension_sections"

ARCHITECTURES = (
    Architecture(names=("qwen2", "qwen2moe", "qwen3", "qwen3moe"), implied=plain(RMS)),
    Architecture(names=("qwen2vl",), implied=plain(SECTIONS)),
    Architecture(names=("qwen3vl", "qwen3vlmoe", "qwen3tts"), implied=plain(SECTIONS, RMS)),
)

"""Grok: plain attention that llama.cpp never runs with flash attention.

``llama_init_from_model`` (src/llama-context.cpp of llama.cpp build 11434) forces it off,
and so refuses quantised values.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._model import Trait
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

ARCHITECTURES = (Architecture(names=("grok",), implied=plain(RMS, traits=(Trait.NO_FLASH,))),)

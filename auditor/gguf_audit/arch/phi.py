"""Phi-3 and Phi-4: a window that is written, read, warned about and not used.

src/models/phi3.cpp of llama.cpp build 11434.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, check, full_layers, needs_heads
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]


def _implied(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    # a value of the wrong type is refused all the same
    hyper.fields.integer("attention.sliding_window")
    needs_heads(hyper)
    return full_layers(hyper)


ARCHITECTURES = (Architecture(names=("phi3",), implied=_implied),)

"""T5: one cache for the decoder's own attention; cross attention keeps nothing.

src/models/t5.cpp of llama.cpp build 11434. The graph asserts where sequences have
streams of their own (measured).
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._model import Trait
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

ARCHITECTURES = (
    Architecture(
        names=("t5",),
        implied=plain(RMS, "attention.relative_buckets_count", traits=(Trait.ONE_STREAM,)),
    ),
)

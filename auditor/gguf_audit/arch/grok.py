"""Grok: plain attention that llama.cpp never runs with flash attention.

``llama_init_from_model`` (src/llama-context.cpp of llama.cpp build 11434) forces it off,
and so refuses quantised values.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._model import Trait
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

#: src/models/grok.cpp: what Grok-1 files, which lack these keys, were made for.
DEFAULTS = {
    "attention.output_scale": 0.08838834764831845,
    "attn_logit_softcapping": 30.0,
    "embedding_scale": 78.38367176906169,
    "final_logit_softcapping": 0.0,
    "logit_scale": 0.5773502691896257,
    "router_logit_softcapping": 30.0,
}

ARCHITECTURES = (
    Architecture(names=("grok",), implied=plain(RMS, traits=(Trait.NO_FLASH,)), defaults=DEFAULTS),
)

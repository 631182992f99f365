"""Qwen3-Next and Qwen3.5: three gated delta nets to one layer of attention.

src/models/qwen3next.cpp, qwen35.cpp and qwen35moe.cpp of llama.cpp build 11434.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._states import SSM, hybrid, intervals, selective
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]


def _delta_net(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    if hyper.architecture != "qwen3next":
        check(hyper, ("rope.dimension_sections",))
    check(hyper, (*SSM, "ssm.group_count"))
    needs_heads(hyper)
    return hybrid(hyper, intervals(hyper, 4), selective(hyper))


ARCHITECTURES = (
    Architecture(
        names=("qwen3next", "qwen35", "qwen35moe"),
        implied=_delta_net,
        saves=frozenset({"state"}),
    ),
)

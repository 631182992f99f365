"""RWKV 6 and 7, and Qwen2 models distilled into them: a state and nothing else.

src/models/rwkv6.cpp, rwkv6qwen2.cpp, rwkv7.cpp and arwkv7.cpp of llama.cpp build 11434.
"""

from __future__ import annotations

from collections.abc import Callable

from gguf_audit.arch._attention import check
from gguf_audit.arch._model import Hyper, LlamaModel, refuse, require
from gguf_audit.arch._states import parts
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Layer

__all__ = ["ARCHITECTURES"]

RWKV6 = ("wkv.head_size", "time_mix_extra_dim", "time_decay_extra_dim")
RWKV7 = (
    "wkv.head_size",
    "attention.decay_lora_rank",
    "attention.iclr_lora_rank",
    "attention.value_residual_mix_lora_rank",
)


def _rwkv(*required: str, shifts: int) -> Callable[[Hyper], LlamaModel]:
    """Return how an RWKV is read whose graph asserts ``shifts`` token shifts."""

    def implied(hyper: Hyper) -> LlamaModel:
        check(hyper, required)
        size = require(hyper.fields, "wkv.head_size")
        count = hyper.fields.integer("token_shift_count")
        count = 2 if count is None else count
        if count != shifts:
            message = f"{count} token shifts, the graph asserts {shifts}"
            raise refuse(hyper.fields, "token_shift_count", message, aborts=True)
        width = hyper.embedding_length
        state = parts(shift=count * width, wkv=width * size)
        return hyper.model(Layer(index=index, stores=(state,)) for index in range(hyper.trunk))

    return implied


ARCHITECTURES = (
    Architecture(names=("rwkv6",), implied=_rwkv(*RWKV6, shifts=2), saves=frozenset({"state"})),
    Architecture(names=("rwkv7",), implied=_rwkv(*RWKV7, shifts=2), saves=frozenset({"state"})),
    Architecture(
        names=("rwkv6qwen2",),
        implied=_rwkv(*RWKV6, shifts=1),
        saves=frozenset({"state"}),
        verified=False,
    ),
    Architecture(names=("arwkv7",), implied=_rwkv(*RWKV7, shifts=1), saves=frozenset({"state"})),
)

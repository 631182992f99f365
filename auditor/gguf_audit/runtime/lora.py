"""How llama.cpp reads a low-rank adapter.

Facts from llama.cpp build 11434, src/llama-adapter.cpp, ``llama_adapter_lora_init_impl``
and ``llama_adapter_lora_weight::get_scale``.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from gguf_audit.gguf import Gguf, Tensor

__all__ = ["ALPHA", "EMBEDDING", "INVOCATION", "Pair", "Pairs", "pairs_of"]

ALPHA = "adapter.lora.alpha"
#: The tokens that activate an aLoRA.
INVOCATION = "adapter.alora.invocation_tokens"
#: Kept in the layout of an embedding: A and B stand the other way round.
EMBEDDING = "token_embd.weight"
_A, _B, _NORM = ".lora_a", ".lora_b", "_norm.weight"


class Pair(Struct, frozen=True, kw_only=True):
    """The two halves of what is added to one tensor; ``None`` for one that is missing."""

    a: Tensor | None = None
    b: Tensor | None = None

    @property
    def rank(self) -> int | None:
        """``ne[0]`` of B: what llama.cpp divides alpha by."""
        return None if self.b is None else self.b.shape[0]


class Pairs(Struct, frozen=True, kw_only=True):
    """What an adapter holds."""

    #: Name of the model's tensor -> what is added to it.
    pairs: Mapping[str, Pair]
    #: Norms, which are read over.
    norms: tuple[str, ...]
    #: Tensors that make llama.cpp refuse the file.
    odd: tuple[str, ...]


def pairs_of(gguf: Gguf) -> Pairs:
    """Sort the tensors of an adapter as llama.cpp does, by the ends of their names."""
    a: dict[str, Tensor] = {}
    b: dict[str, Tensor] = {}
    norms: list[str] = []
    odd: list[str] = []
    for name, tensor in gguf.tensors.items():
        if name.endswith(_A):
            a[name.removesuffix(_A)] = tensor
        elif name.endswith(_B):
            b[name.removesuffix(_B)] = tensor
        else:
            (norms if name.endswith(_NORM) else odd).append(name)
    pairs = {name: Pair(a=a.get(name), b=b.get(name)) for name in dict.fromkeys((*a, *b))}
    return Pairs(pairs=pairs, norms=tuple(norms), odd=tuple(odd))

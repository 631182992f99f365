"""Encoders and diffusion models: llama.cpp makes no cache for them at all.

The first case of ``llama_model::create_memory`` (src/llama-model.cpp of llama.cpp build
11434). T5's encoder isn't among them: it gets a cache that it never reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from gguf_audit.arch._attention import NORM, RMS, check, needs_heads
from gguf_audit.arch._model import Hyper, LlamaModel, Trait
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Layer

__all__ = ["ARCHITECTURES"]

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "bert": (NORM,),
    "dream": (RMS,),
    "eurobert": (RMS,),
    "gemma-embedding": ("attention.sliding_window", RMS),
    "jina-bert-v2": (NORM,),
    "jina-bert-v3": (NORM,),
    "llada": (RMS,),
    "llada-moe": (RMS,),
    "modern-bert": (NORM,),
    "neo-bert": (RMS,),
    "nomic-bert": (NORM,),
    "nomic-bert-moe": (NORM,),
    "rnd1": (RMS,),
}
#: Keys without which a vocoder's other networks have no size.
VOCODER = (
    NORM,
    "attention.group_norm_epsilon",
    "attention.group_norm_groups",
    "convnext.block_count",
    "convnext.embedding_length",
    "features_length",
    "posnet.block_count",
    "posnet.embedding_length",
)
#: Clef is a Qwen3.5 that decides instead of writing.
CLEF = (
    RMS,
    NORM,
    "decision.block_count",
    "decision.head_count",
    "decision.routing_block_count",
    "rope.dimension_sections",
    "ssm.conv_kernel",
    "ssm.group_count",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
)


def no_cache(*required: str, heads: bool = True) -> Callable[[Hyper], LlamaModel]:
    """Return how an architecture is read that keeps nothing."""

    def implied(hyper: Hyper) -> LlamaModel:
        check(hyper, required)
        if heads:
            needs_heads(hyper)
        layers = (Layer(index=index) for index in range(hyper.trunk))
        model = hyper.model(layers, traits=(Trait.NO_CACHE,))
        return replace(model, causal=model.causal and hyper.architecture != "gemma-embedding")

    return implied


ARCHITECTURES = (
    *(
        Architecture(names=(name,), implied=no_cache(*required))
        for name, required in REQUIRED.items()
    ),
    Architecture(names=("wavtokenizer-dec",), implied=no_cache(*VOCODER, heads=False)),
    Architecture(names=("clef",), implied=no_cache(*CLEF), verified=False),
)

"""dots.llm1, and dots3-note with latents, windows and an indexer.

src/models/dots1.cpp, dots3note.cpp and src/llama-kv-cache-dsa-iswa.cpp of llama.cpp
build 11434; ``Dots1Model`` in conversion/dots1.py.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, check, flags, needs_heads, plain
from gguf_audit.arch._latent import INDEXER, indexer, latent, packed_lengths, unpacked
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.arch._recipe import Recipe, sizes
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Latent, Layer
from gguf_audit.subject import Json

__all__ = ["ARCHITECTURES"]

NOTE = (
    RMS,
    "expert_shared_count",
    "expert_feed_forward_length",
    "leading_dense_block_count",
    "expert_gating_func",
    "attention.q_lora_rank",
    "attention.kv_lora_rank",
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.kv_lora_rank_swa",
    "attention.key_length_mla_swa",
    "attention.value_length_mla_swa",
    "attention.sliding_window",
    "rope.freq_base_swa",
    *INDEXER,
)


def _note(hyper: Hyper) -> LlamaModel:
    check(hyper, NOTE)
    needs_heads(hyper)
    pattern = _list(hyper, "attention.sliding_window_pattern")
    own = _list(hyper, "attention.indexer.types")
    if packed_lengths(hyper) is None:
        name = "attention.key_length_mla"
        raise refuse(hyper.fields, name, "dots3note has no other form than MLA")
    tokens = require(hyper.fields, "attention.sliding_window")
    layers: list[Layer] = []
    for index in range(hyper.trunk):
        store = latent(hyper, index)
        if pattern[index]:
            store = Latent(kv_heads=1, key_length=hyper.key_length_swa, window_tokens=tokens)
        beside = (indexer(hyper),) if own[index] else ()
        layers.append(Layer(index=index, stores=(store, *beside)))
    return hyper.model(
        layers,
        windowed=pattern,
        traits=(Trait.ONE_TYPE,),
        unpacked=[unpacked(hyper, index) for index in range(hyper.trunk)],
    )


def _list(hyper: Hyper, name: str) -> tuple[bool, ...]:
    found = flags(hyper, name)
    if found is None:
        raise refuse(hyper.fields, name, f"{hyper.fields.key(name)} is absent or no array")
    return found


#: Dots1Config of transformers 4.57.6.
DOTS1: dict[str, Json] = {
    **sizes(152064, 4608, 10944, 62, 32, 32, None, 2048, 1e-6, 1e4),
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 1408,
    "first_k_dense_replace": 0,
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
}
DOTS1_RECIPE = Recipe(
    takes=("Dots1ForCausalLM",),
    writes="dots1",
    defaults={"dots1": DOTS1},
    needs={
        "leading_dense_block_count": "first_k_dense_replace",
        "expert_shared_count": "n_shared_experts",
        "expert_feed_forward_length": "moe_intermediate_size",
        "expert_weights_scale": "routed_scaling_factor",
        "expert_weights_norm": "norm_topk_prob",
    },
)

ARCHITECTURES = (
    Architecture(
        names=("dots1",),
        implied=plain(RMS, "expert_feed_forward_length", "expert_shared_count"),
        converters=(DOTS1_RECIPE.converter(),),
    ),
    Architecture(names=("dots3note",), implied=_note, saves=frozenset({"latent", "window"})),
)

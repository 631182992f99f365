"""Kimi Linear and K3, Bailing 3 and GLM-5-Next: delta attention with latents among it.

src/models/kimi-linear.cpp, kimi-k3.cpp, bailingmoe3.cpp and glm5-next.cpp of llama.cpp
build 11434. A block with 0 key-value heads has a state instead.
"""

from __future__ import annotations

from dataclasses import replace

from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._latent import latent, packed_lengths, unpacked
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.arch._states import delta, even_batches, without_kv
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Indexer, Layer, Store

__all__ = ["ARCHITECTURES"]

COMMON = (
    RMS,
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.kv_lora_rank",
    "ssm.conv_kernel",
    "kda.head_dim",
    "expert_feed_forward_length",
    "expert_shared_count",
)
REQUIRED = {
    "kimi-linear": ("expert_gating_func",),
    "kimi-k3": (
        "expert_gating_func",
        "attn_res.block_size",
        "activation.situ_beta",
        "activation.situ_linear_beta",
    ),
    "bailingmoe3": ("expert_gating_func", "kda.gate_lower_bound", "leading_dense_block_count"),
    "glm5-next": (
        "attention.q_lora_rank",
        "attention.indexer.head_count",
        "attention.indexer.key_length",
        "attention.indexer.top_k",
        "attention.indexer.kpool",
        "hyper_connection.count",
        "hyper_connection.sinkhorn_iterations",
        "hyper_connection.epsilon",
    ),
}
#: Key, gate and pooled key stand side by side in a cell.
POOLED_ROWS = 3


def _implied(hyper: Hyper) -> LlamaModel:
    check(hyper, COMMON)
    check(hyper, REQUIRED[hyper.architecture])
    needs_heads(hyper)
    if packed_lengths(hyper) is None:
        raise refuse(
            hyper.fields,
            "attention.key_length_mla",
            f"{hyper.architecture} has no other form than MLA",
            aborts=True,
        )
    if hyper.architecture in ("kimi-k3", "glm5-next"):
        # the value is read out of the latent, whatever value_length says
        rank = require(hyper.fields, "attention.kv_lora_rank")
        hyper = replace(hyper, value_length=rank)
    layers = [Layer(index=index, stores=_stores(hyper, index)) for index in range(hyper.blocks)]
    if hyper.architecture == "glm5-next":
        layers = layers[: hyper.trunk]
    kept = [layer for layer in layers if layer.index < hyper.trunk or layer.stores]
    traits = [Trait.ONE_TYPE]
    if hyper.architecture == "kimi-linear":
        traits.extend(even_batches(hyper, without_kv(hyper)))
    return hyper.model(
        kept,
        traits=traits,
        unpacked=[unpacked(hyper, layer.index) for layer in kept if hyper.kv_heads[layer.index]],
    )


def _stores(hyper: Hyper, index: int) -> tuple[Store, ...]:
    if hyper.kv_heads[index] == 0:
        return (delta(hyper),) if index < hyper.trunk else ()
    store = latent(hyper, index)
    if hyper.architecture != "glm5-next" or not _own_indexer(hyper, index):
        return (store,)
    length = require(hyper.fields, "attention.indexer.key_length")
    return (store, Indexer(kv_heads=1, key_length=length * POOLED_ROWS))


def _own_indexer(hyper: Hyper, index: int) -> bool:
    pool = require(hyper.fields, "attention.indexer.kpool")
    budget = require(hyper.fields, "attention.indexer.top_k")
    if pool <= 1 or budget % pool:
        message = f"pools of {pool} tokens for a budget of {budget}"
        raise refuse(hyper.fields, "attention.indexer.kpool", message, aborts=True)
    own = hyper.fields.per_block("attention.indexer.types", hyper.trunk)
    return index < hyper.trunk and (own is None or bool(own[index]))


ARCHITECTURES = (
    Architecture(names=("kimi-linear",), implied=_implied, saves=frozenset({"latent", "state"})),
    Architecture(
        names=("kimi-k3", "bailingmoe3", "glm5-next"),
        implied=_implied,
        saves=frozenset({"latent", "state"}),
    ),
)

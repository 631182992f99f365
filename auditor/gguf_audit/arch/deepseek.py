"""DeepSeek V2 to V4 and what else keeps a latent on every layer.

src/models/deepseek2.cpp, deepseek32.cpp, glm-dsa.cpp, hy-v4.cpp, dots3note.cpp and
deepseek4.cpp of llama.cpp build 11434; caches in src/llama-kv-cache-dsa.cpp,
-dsa-iswa.cpp and -dsv4.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gguf_audit.arch._attention import RMS, check, flags, full_layers, needs_heads
from gguf_audit.arch._latent import latent, packed_lengths, unpacked
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import (
    Compressed,
    Indexer,
    Latent,
    Layer,
    Recurrent,
    StatePart,
    Store,
)
from gguf_audit.subject import Array

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
SHARED = "expert_shared_count"
INDEXER = (
    "attention.indexer.head_count",
    "attention.indexer.key_length",
    "attention.indexer.top_k",
)
BOTH = ("attention.key_length_mla", "attention.value_length_mla")
#: Block counts of the variants that have no rank for queries.
LITE_BLOCKS = frozenset({26, 27})
#: A lite variant of 48 blocks is known by its vocabulary.
LITE_VOCABULARY = 128256


def _deepseek2(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, "attention.kv_lora_rank", EXPERTS, SHARED))
    if not _is_lite(hyper):
        check(hyper, ("attention.q_lora_rank",))
    needs_heads(hyper)
    if packed_lengths(hyper) is None:
        # the generation before MLA was kept: keys and values of every head
        return full_layers(hyper)
    return _latents(hyper, [()] * hyper.trunk)


def _is_lite(hyper: Hyper) -> bool:
    if hyper.trunk in LITE_BLOCKS:
        return True
    return hyper.trunk == 48 and _vocabulary(hyper) == LITE_VOCABULARY


def _vocabulary(hyper: Hyper) -> int | None:
    size = hyper.fields.integer("vocab_size")
    if size is not None:
        return size
    for field in hyper.fields:
        if field.key == "tokenizer.ggml.tokens" and isinstance(field.value, Array | tuple):
            return len(field.value)
    return None


def _latents(hyper: Hyper, beside: Sequence[Sequence[Store]]) -> LlamaModel:
    """Return a latent per layer with what each layer keeps beside it."""
    layers = [
        Layer(index=index, stores=(latent(hyper, index), *beside[index]))
        for index in range(len(beside))
    ]
    heads = [unpacked(hyper, index) for index in range(len(beside))]
    return hyper.model(layers, traits=(Trait.ONE_TYPE,), unpacked=heads)


def _sparse(*required: str) -> Callable[[Hyper], LlamaModel]:
    """Return how an architecture with a latent and an indexer on every layer is read."""

    def implied(hyper: Hyper) -> LlamaModel:
        check(hyper, (*required, "attention.q_lora_rank", "attention.kv_lora_rank", *INDEXER))
        needs_heads(hyper)
        if packed_lengths(hyper) is None:
            name = "attention.key_length_mla"
            raise refuse(hyper.fields, name, f"{hyper.architecture} has no other form than MLA")
        own = _own_indexers(hyper)
        return _latents(hyper, [(_indexer(hyper),) if has else () for has in own])

    return implied


def _indexer(hyper: Hyper) -> Indexer:
    length = require(hyper.fields, "attention.indexer.key_length")
    return Indexer(kv_heads=1, key_length=length)


#: From this training context on, a GLM without a list is one whose layers share indexers.
GLM_SHARING_CONTEXT = 1048576


def _own_indexers(hyper: Hyper) -> tuple[bool, ...]:
    """Return which trunk layers have an indexer of their own."""
    every = (True,) * hyper.trunk
    if hyper.architecture != "glm-dsa":
        return every
    listed = hyper.fields.per_block("attention.indexer.types", hyper.trunk)
    if listed is not None:
        return tuple(bool(own) for own in listed)
    if hyper.context_length < GLM_SHARING_CONTEXT:
        return every
    # two layers, then the first of every four; the list ends with GLM-5.2's 78 layers
    return tuple(index < 2 or (index < 78 and (index - 2) % 4 == 0) for index in range(hyper.trunk))


def _hy_v4(hyper: Hyper) -> LlamaModel:
    required = (
        RMS,
        "attention.q_lora_rank",
        "attention.kv_lora_rank",
        *BOTH,
        EXPERTS,
        SHARED,
        "hyper_connection.count",
        "hyper_connection.epsilon",
        "hyper_connection.magnitude",
    )
    check(hyper, required)
    needs_heads(hyper)
    if packed_lengths(hyper) is None:
        raise refuse(hyper.fields, BOTH[0], "hy_v4 has no other form than MLA", aborts=True)
    if not hyper.fields.integer("attention.indexer.top_k"):
        return _latents(hyper, [()] * hyper.blocks)
    rope = hyper.fields.integer("rope.dimension_count")
    rope = hyper.key_length if rope is None else rope
    length = hyper.fields.integer("attention.indexer.key_length") or 0
    if not hyper.fields.integer("attention.indexer.head_count") or length <= rope:
        name = "attention.indexer.key_length"
        raise refuse(hyper.fields, name, f"indexer keys of {length} elements, {rope} of RoPE")
    own = hyper.fields.per_block("attention.indexer.types", hyper.trunk) or (0,) * hyper.trunk
    if not own[0]:
        name = "attention.indexer.types"
        raise refuse(hyper.fields, name, "block 0 has no indexer to share")
    return _latents(hyper, [(_indexer(hyper),) if has else () for has in own])


def _dots3note(hyper: Hyper) -> LlamaModel:
    required = (
        RMS,
        SHARED,
        EXPERTS,
        "leading_dense_block_count",
        "expert_gating_func",
        "attention.q_lora_rank",
        "attention.kv_lora_rank",
        *BOTH,
        "attention.kv_lora_rank_swa",
        "attention.key_length_mla_swa",
        "attention.value_length_mla_swa",
        "attention.sliding_window",
        "rope.freq_base_swa",
        *INDEXER,
    )
    check(hyper, required)
    needs_heads(hyper)
    pattern = _list(hyper, "attention.sliding_window_pattern")
    own = _list(hyper, "attention.indexer.types")
    if packed_lengths(hyper) is None:
        raise refuse(hyper.fields, BOTH[0], "dots3note has no other form than MLA")
    tokens = require(hyper.fields, "attention.sliding_window")
    layers: list[Layer] = []
    for index in range(hyper.trunk):
        store = latent(hyper, index)
        if pattern[index]:
            store = Latent(kv_heads=1, key_length=hyper.key_length_swa, window_tokens=tokens)
        beside = (_indexer(hyper),) if own[index] else ()
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


DEEPSEEK4 = (
    RMS,
    "attention.q_lora_rank",
    "attention.sliding_window",
    EXPERTS,
    SHARED,
    "expert_weights_scale",
    "expert_weights_norm",
    "swiglu_clamp_exp",
    *INDEXER,
    "attention.output_group_count",
    "attention.output_lora_rank",
    "attention.compress_rope_freq_base",
    "hyper_connection.count",
    "hyper_connection.sinkhorn_iterations",
    "hyper_connection.epsilon",
    "hash_layer_count",
    "attention.compress_ratios",
    "expert_gating_func",
)
#: ``LLAMA_EXPERT_GATING_FUNC_TYPE_SQRT_SOFTPLUS`` (src/llama-hparams.h).
SQRT_SOFTPLUS = 4
#: Tokens per compressed row: fine rows, which an indexer picks from, and coarse ones.
FINE, COARSE = 4, 128


def _deepseek4(hyper: Hyper) -> LlamaModel:
    check(hyper, DEEPSEEK4)
    needs_heads(hyper)
    name = "attention.compress_ratios"
    ratios = hyper.fields.items(name) or ()
    if len(ratios) < hyper.blocks:
        message = f"{hyper.fields.key(name)} has {len(ratios)} items for {hyper.blocks} blocks"
        raise refuse(hyper.fields, name, message)
    if require(hyper.fields, "expert_gating_func") != SQRT_SOFTPLUS:
        message = f"{hyper.fields.key('expert_gating_func')} isn't {SQRT_SOFTPLUS}"
        raise refuse(hyper.fields, "expert_gating_func", message)
    tokens = require(hyper.fields, "attention.sliding_window")
    length = hyper.key_length_swa
    layers: list[Layer] = []
    for index in range(hyper.blocks):
        kv_heads = hyper.kv_heads[index]
        if kv_heads != 1:
            message = f"{kv_heads} key-value heads in block {index}"
            raise refuse(hyper.fields, "attention.head_count_kv", message, aborts=True)
        window = Latent(kv_heads=kv_heads, key_length=length, window_tokens=tokens)
        extra = _compressed(hyper, length, ratios[index])
        layers.append(Layer(index=index, stores=(window, *extra)))
    return hyper.model(
        layers,
        windowed=(True,) * hyper.blocks,
        traits=(Trait.ONE_TYPE, Trait.OWN_STREAMS),
        unpacked=[hyper.full(index) for index in range(hyper.blocks)],
    )


def _compressed(hyper: Hyper, length: int, ratio: object) -> tuple[Store, ...]:
    """Return what a layer keeps of tokens that have left the window.

    A compressor holds the rows it is still working on in two f32 planes: twice 4 rows
    of two keys for fine rows, 128 of one for coarse ones.
    """
    if ratio == FINE:
        picker = require(hyper.fields, "attention.indexer.key_length")
        return (
            Compressed(kv_heads=1, key_length=length, tokens_per_cell=FINE),
            Indexer(kv_heads=1, key_length=picker, tokens_per_cell=FINE),
            Recurrent(
                parts=(
                    StatePart(name="csa", elements=2 * 2 * FINE * 2 * length),
                    StatePart(name="lid", elements=2 * 2 * FINE * 2 * picker),
                )
            ),
        )
    if ratio == COARSE:
        return (
            Compressed(kv_heads=1, key_length=length, tokens_per_cell=COARSE),
            Recurrent(parts=(StatePart(name="hca", elements=2 * COARSE * length),)),
        )
    return ()


ARCHITECTURES = (
    Architecture(names=("deepseek2", "mistral4"), implied=_deepseek2, saves=frozenset({"latent"})),
    Architecture(
        names=("deepseek32",),
        implied=_sparse(EXPERTS, RMS, SHARED, "expert_gating_func"),
        saves=frozenset({"latent"}),
    ),
    Architecture(
        names=("glm-dsa",), implied=_sparse(EXPERTS, RMS, SHARED), saves=frozenset({"latent"})
    ),
    Architecture(names=("hy_v4",), implied=_hy_v4, saves=frozenset({"latent"})),
    Architecture(names=("dots3note",), implied=_dots3note, saves=frozenset({"latent", "window"})),
    Architecture(names=("deepseek4",), implied=_deepseek4, saves=frozenset({"latent", "window"})),
)

"""What llama.cpp reads for every architecture, and what it makes of it.

Facts from llama.cpp build 11434: ``llama_model_base::load_hparams`` and
``llama_model::create_memory`` (src/llama-model.cpp), src/llama-hparams.cpp.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from msgspec import Struct

from gguf_audit.arch._reads import reads
from gguf_audit.errors import LimitError, Refused
from gguf_audit.fields import Fields
from gguf_audit.layout import CacheLayout, Full, Layer, Recurrent
from gguf_audit.limits import LIMITS
from gguf_audit.where import Where

__all__ = ["Hyper", "LlamaModel", "Trait", "read_hyper", "refuse", "require"]

#: ``LLAMA_MAX_LAYERS`` and ``LLAMA_MAX_EXPERTS`` (src/llama-hparams.h).
MAX_LAYERS = 512
MAX_EXPERTS = 1024


class Trait(enum.Enum):
    """What an architecture asks of the context, beyond its stores."""

    #: No cache is created at all (encoders, diffusion models).
    NO_CACHE = "no cache"
    #: Keys and values must be of one type (MLA, DeepSeek-V4).
    ONE_TYPE = "one type"
    #: Flash attention is forced off (Grok).
    NO_FLASH = "no flash attention"
    #: Every sequence has its own stream, whatever the user asks (DeepSeek-V4).
    OWN_STREAMS = "own streams"
    #: The process dies where a micro batch isn't a multiple of the streams: the graph
    #: is reserved for one sequence, and attention splits it over the streams.
    EVEN_BATCHES = "even batches"
    #: The cache is another model's, and there is none (drafts of Gemma 4).
    BORROWED = "borrowed cache"
    #: The process dies where flash attention is on and every sequence has its own stream:
    #: sparse attention wants an indexer head for each key-value head (MiniMax-M3).
    UNPICKED = "heads without an indexer"
    #: The process dies where sequences don't share one stream (T5).
    ONE_STREAM = "one stream"


class LlamaModel(Struct, frozen=True, kw_only=True):
    """What llama.cpp makes of a file's metadata, as far as memory goes."""

    layout: CacheLayout
    #: Tokens of training context: the default context, and the only use here.
    context_length: int
    causal: bool = True
    traits: frozenset[Trait] = frozenset()
    #: Key and value length of one head of each trunk layer, each pair once: what the
    #: block size of a quantised cache type must divide.
    head_lengths: tuple[tuple[int, int], ...] = ()
    #: Elements of the widest value row over all layers: without flash attention every
    #: layer's row is as wide (TAG_V_CACHE_VARIABLE in src/llama-kv-cache.cpp).
    widest_value: int = 0
    #: Layers that are in the attention cache with no head of their own: they cost
    #: nothing, unless flash attention is off.
    hollow: tuple[int, ...] = ()
    #: Heads of every layer with attention as if nothing were packed or windowed.
    unpacked: tuple[Full, ...] = ()


class Hyper(Struct, frozen=True, kw_only=True):
    """Hyper-parameters that llama.cpp reads for every architecture."""

    fields: Fields
    context_length: int
    embedding_length: int
    #: ``block_count``: trunk and draft (MTP) blocks; and the trunk alone.
    blocks: int
    trunk: int
    causal: bool
    #: One number per block.
    heads: tuple[int, ...]
    kv_heads: tuple[int, ...]
    feed_forward: tuple[int, ...]
    key_length: int
    value_length: int
    #: The same for layers with a window.
    key_length_swa: int
    value_length_swa: int

    @property
    def architecture(self) -> str:
        """``general.architecture``."""
        return self.fields.architecture

    def full(self, layer: int) -> Full:
        """Return the store of a layer that attends to everything."""
        return Full(
            kv_heads=self.kv_heads[layer],
            key_length=self.key_length,
            value_length=self.value_length,
        )

    def model(
        self,
        layers: Iterable[Layer],
        *,
        windowed: Sequence[bool] = (),
        traits: Iterable[Trait] = (),
        unpacked: Sequence[Full] | None = None,
        hollow: Sequence[int] = (),
    ) -> LlamaModel:
        """Put a layout together with what else the planner needs of these values.

        ``windowed`` says of every block whether its heads have the lengths of window
        layers; ``unpacked`` defaults to the heads of every layer with attention.
        """
        kept = tuple(layers)
        windows = tuple(windowed) or (False,) * self.blocks
        lengths = tuple(
            (self.key_length_swa, self.value_length_swa)
            if window
            else (self.key_length, self.value_length)
            for window in windows
        )
        if unpacked is None:
            unpacked = tuple(
                Full(kv_heads=self.kv_heads[layer.index], key_length=key, value_length=value)
                for layer in kept
                if _attends(layer)
                for key, value in (lengths[layer.index],)
            )
        return LlamaModel(
            layout=CacheLayout(layers=kept),
            context_length=self.context_length,
            causal=self.causal,
            traits=frozenset(traits),
            head_lengths=tuple(dict.fromkeys(lengths[: self.trunk])),
            widest_value=max(
                (value * kv for (_, value), kv in zip(lengths, self.kv_heads, strict=True)),
                default=0,
            ),
            hollow=tuple(hollow),
            unpacked=tuple(unpacked),
        )


def _attends(layer: Layer) -> bool:
    if layer.shares_with is not None:
        return True
    return any(not isinstance(store, Recurrent) for store in layer.stores)


def read_hyper(fields: Fields) -> Hyper:
    """Read what every architecture has in common.

    Raises Refused where llama.cpp refuses a value or asserts, and LimitError where
    ``block_count`` is beyond what we look at.
    """
    context_length = require(fields, "context_length")
    embedding_length = require(fields, "embedding_length")
    causal = fields.boolean("attention.causal")
    blocks = require(fields, "block_count")
    if blocks > LIMITS.blocks:
        where = Where(key=fields.key("block_count"))
        raise LimitError(f"{blocks} blocks; at most {LIMITS.blocks} are looked at", where=where)
    if not 0 < blocks <= MAX_LAYERS:
        message = f"{blocks} blocks, llama.cpp asserts 1 to {MAX_LAYERS}"
        raise refuse(fields, "block_count", message, aborts=True)
    drafts = fields.integer("nextn_predict_layers") or 0
    if drafts >= blocks:
        # asserts no more than there are, and dies of a model without any other
        message = f"{drafts} draft blocks out of {blocks} leave no block to run"
        raise refuse(fields, "nextn_predict_layers", message, aborts=True)
    _check_experts(fields, blocks)
    feed_forward = fields.per_block("feed_forward_length", blocks) or (0,) * blocks
    heads = fields.per_block("attention.head_count", blocks) or (0,) * blocks
    kv_heads = fields.per_block("attention.head_count_kv", blocks) or heads
    _check_rope(fields)
    key_length = value_length = 0
    if heads[0] > 0:
        share = embedding_length // heads[0]
        key_length = _or(fields.integer("attention.key_length"), share)
        value_length = _or(fields.integer("attention.value_length"), share)
        _check_rotation(fields, key_length)
    fields.integer("rope.dimension_count_swa")
    return Hyper(
        fields=fields,
        context_length=context_length,
        embedding_length=embedding_length,
        blocks=blocks,
        trunk=blocks - drafts,
        causal=True if causal is None else causal,
        heads=heads,
        kv_heads=kv_heads,
        feed_forward=feed_forward,
        key_length=key_length,
        value_length=value_length,
        key_length_swa=_or(fields.integer("attention.key_length_swa"), key_length),
        value_length_swa=_or(fields.integer("attention.value_length_swa"), value_length),
    )


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _check_experts(fields: Fields, blocks: int) -> None:
    experts = fields.integer("expert_count") or 0
    used = max(fields.per_block("expert_used_count", blocks) or (0,))
    groups = fields.integer("expert_group_count") or 0
    groups_used = fields.integer("expert_group_used_count") or 0
    if fields.architecture in {"hunyuan_vl", "hunyuan-dense"} and experts <= 1:
        experts = used = 0
    if experts > MAX_EXPERTS or used > experts or (experts > 0 and used == 0):
        message = f"{used} of {experts} experts used, llama.cpp asserts a sensible number"
        raise refuse(fields, "expert_used_count", message, aborts=True)
    _check_gating(fields, experts)
    grouped = groups > 1 and (experts % groups != 0 or not 0 < groups_used < groups)
    if (experts == 0 and groups > 0) or 0 < experts <= groups or (experts > 0 and grouped):
        message = f"{experts} experts in {groups} groups, llama.cpp asserts a sensible number"
        raise refuse(fields, "expert_group_count", message, aborts=True)


def _check_gating(fields: Fields, experts: int) -> None:
    name = "expert_gating_func"
    if experts == 0 or not reads(fields.architecture, name):
        return
    function = fields.integer(name)
    if function is not None and function > LAST_GATING:
        message = f"experts are chosen by function {function}, llama.cpp knows 1 to {LAST_GATING}"
        raise refuse(fields, name, message, aborts=True)
    if not function and fields.architecture in WITHOUT_GATING:
        message = f"{fields.key(name)} is absent or 0, and no function is a default"
        raise refuse(fields, name, message, aborts=True)


#: ``LLAMA_EXPERT_GATING_FUNC_TYPE_SQRT_SOFTPLUS``, the last one (src/llama-hparams.h).
LAST_GATING = 4
#: Have no gating function where the file names none (``build_moe_ffn`` aborts).
WITHOUT_GATING = frozenset({"dots1", "hy_v4", "minimax-m2", "smallthinker"})


#: ``LLAMA_ROPE_SCALING_TYPES`` (src/llama-model.cpp).
ROPE_SCALING_TYPES = frozenset({"none", "linear", "yarn", "longrope"})


#: Architectures that rotate whole heads or nothing.
WHOLE_ROTATION = frozenset({"llama", "deci", "falcon", "llama-embed"})


def _check_rotation(fields: Fields, key_length: int) -> None:
    rotated = _or(fields.integer("rope.dimension_count"), key_length)
    if fields.architecture in WHOLE_ROTATION and rotated != key_length:
        message = f"rotates {rotated} of a head's {key_length} elements, llama.cpp wants all"
        raise refuse(fields, "rope.dimension_count", message)


def _check_rope(fields: Fields) -> None:
    fields.boolean("rope.scaling.finetuned")
    fields.integer("rope.scaling.original_context_length")
    fields.number("rope.freq_base")
    scaling = fields.string("rope.scaling.type")
    if scaling is not None and scaling not in ROPE_SCALING_TYPES:
        raise refuse(
            fields,
            "rope.scaling.type",
            f"RoPE scaling {scaling[: LIMITS.shown_characters]!r} is none that llama.cpp knows",
            aborts=True,
        )
    if fields.number("rope.scaling.factor") is None:
        fields.number("rope.scale_linear")
    fields.number("rope.scaling.attn_factor")
    fields.number("rope.scaling.alpha")


def require(fields: Fields, name: str) -> int:
    """Return an unsigned integer that llama.cpp won't load a file without."""
    value = fields.integer(name)
    if value is None:
        raise refuse(fields, name, f"{fields.key(name)} is absent")
    return value


def refuse(fields: Fields, name: str, message: str, *, aborts: bool = False) -> Refused:
    """Make the error for a key that llama.cpp stumbles over."""
    found = fields.find(name)
    offset = found.offset if found is not None else None
    where = Where(key=fields.key(name), offset=offset)
    return Refused(message, kind="aborts" if aborts else "refused", where=where)

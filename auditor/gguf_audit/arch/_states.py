"""Recurrent states and the layers that have them, as llama.cpp reads them.

``llama_hparams::n_embd_r`` and ``n_embd_s`` (src/llama-hparams.cpp) and the filters of
``llama_model::create_memory`` (src/llama-model.cpp), llama.cpp build 11434. Always f32.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gguf_audit.arch._attention import flags
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.gguf import Array
from gguf_audit.layout import Layer, Recurrent, StatePart, Store

__all__ = ["SSM", "even_batches", "hybrid", "intervals", "selective", "without_kv"]

#: What every state-space loader reads.
SSM = ("ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank")


def parts(**elements: int) -> Recurrent:
    """Return a state out of its parts' elements, empty parts left out."""
    return Recurrent(
        parts=tuple(
            StatePart(name=name, elements=count) for name, count in elements.items() if count
        )
    )


def selective(hyper: Hyper, *, grouped: bool = True) -> Recurrent:
    """Return the state of a Mamba or gated delta net layer.

    Loaders of the first Mamba's kind don't read ``ssm.group_count``.
    """
    kernel = require(hyper.fields, "ssm.conv_kernel")
    inner = require(hyper.fields, "ssm.inner_size")
    state = require(hyper.fields, "ssm.state_size")
    require(hyper.fields, "ssm.time_step_rank")
    groups = require(hyper.fields, "ssm.group_count") if grouped else 0
    return parts(conv=max(kernel - 1, 0) * (inner + 2 * groups * state), ssm=state * inner)


def delta(hyper: Hyper) -> Recurrent:
    """Return the state of a Kimi delta attention layer; heads are those of layer 0."""
    length = require(hyper.fields, "kda.head_dim")
    kernel = require(hyper.fields, "ssm.conv_kernel")
    if length == 0:
        return Recurrent(parts=())
    steps = kernel - 1 if kernel > 0 else 3
    heads = hyper.heads[0]
    return parts(conv=3 * steps * heads * length, ssm=length * length * heads)


def without_kv(hyper: Hyper) -> tuple[bool, ...]:
    """Return which blocks are recurrent where 0 key-value heads say so."""
    return tuple(
        index < hyper.trunk and hyper.kv_heads[index] == 0 for index in range(hyper.blocks)
    )


def intervals(hyper: Hyper, default: int) -> tuple[bool, ...]:
    """Return which blocks are recurrent where a list, or a period, says so.

    full_attention_interval 4:   R R R F  R R R F
    """
    name = "attention.recurrent_layers"
    found = hyper.fields.find(name)
    if found is not None:
        if isinstance(found.value, Array | tuple):
            hyper.fields.per_block(name, hyper.blocks)
            return flags(hyper, name) or ()
        return (bool(hyper.fields.integer(name)),) * hyper.blocks
    period = hyper.fields.integer("full_attention_interval")
    period = default if period is None else period
    if period == 0:
        message = f"{hyper.fields.key('full_attention_interval')} is 0, llama.cpp divides by it"
        raise refuse(hyper.fields, "full_attention_interval", message, aborts=True)
    return tuple(index < hyper.trunk and (index + 1) % period != 0 for index in range(hyper.blocks))


def even_batches(hyper: Hyper, recurrent: Sequence[bool]) -> tuple[Trait, ...]:
    """Return the trait of graphs that are reserved for a single sequence.

    ``llama_context::sched_reserve`` (src/llama-context.cpp) does so for two
    architectures. Only the last layer may lose the tokens that the streams can't share:
    its rows are picked anyway.
    """
    before_last = range(hyper.trunk - 1)
    return (Trait.EVEN_BATCHES,) if not all(recurrent[index] for index in before_last) else ()


def hybrid(
    hyper: Hyper,
    recurrent: Sequence[bool],
    state: Recurrent,
    *,
    attention: Sequence[Store | None] | None = None,
    traits: Iterable[Trait] = (),
) -> LlamaModel:
    """Return a model whose layers have either a state or attention.

    ``attention`` is what each block keeps if it isn't recurrent; by default its heads,
    in the trunk's blocks.
    """
    if attention is None:
        attention = [
            hyper.full(index) if index < hyper.trunk else None for index in range(hyper.blocks)
        ]
    layers: list[Layer] = []
    hollow: list[int] = []
    for index in range(hyper.blocks):
        store = attention[index]
        if index < hyper.trunk and recurrent[index]:
            layers.append(Layer(index=index, stores=(state,)))
        elif store is None or isinstance(store, Recurrent):
            layers.append(Layer(index=index))
        elif store.kv_heads == 0:
            hollow.append(index)
            layers.append(Layer(index=index))
        else:
            layers.append(Layer(index=index, stores=(store,)))
    kept = [layer for layer in layers if layer.index < hyper.trunk or layer.stores]
    return hyper.model(kept, traits=traits, hollow=hollow)

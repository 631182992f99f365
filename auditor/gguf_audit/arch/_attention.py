"""Layers of plain and windowed attention, as llama.cpp reads them.

``llama_model_base::load_swa_pattern`` (src/llama-model.cpp),
``llama_hparams::set_swa_pattern`` (src/llama-hparams.cpp) and ``load_arch_hparams`` of
src/models/*.cpp, build 11434.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from gguf_audit.arch._model import MAX_LAYERS, Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.gguf import Array, Field, ValueType
from gguf_audit.layout import Chunked, Layer, Sliding, Store

__all__ = ["Window", "check", "flags", "plain", "windowed", "windows"]

RMS = "attention.layer_norm_rms_epsilon"
NORM = "attention.layer_norm_epsilon"


class Window(Struct, frozen=True, kw_only=True):
    """How llama.cpp finds an architecture's window.

    The pattern is a period whose last layer (first, where ``dense_first``) is full:

        period 4:                S S S F  S S S F
        period 4, dense_first:   F S S S  F S S S
    """

    #: Tokens where the key is absent; 0 for no window, ``None`` where it is refused.
    when_absent: int | None = None
    #: 0 in the key means no window; else the window is on and has no tokens.
    zero_is_none: bool = False
    #: Tokens whatever the key says.
    fixed: int | None = None
    #: ``None`` where the pattern must be an array in the file.
    period: int | None
    dense_first: bool = False
    #: The file's own pattern is read at all.
    reads_pattern: bool = True
    chunked: bool = False
    #: The window exists only in models of so many blocks.
    only_at: int | None = None


def check(hyper: Hyper, required: Iterable[str]) -> None:
    """Raise Refused for the first key that isn't there, or isn't the number it must be."""
    for name in required:
        if name not in hyper.fields:
            raise refuse(hyper.fields, name, f"{hyper.fields.key(name)} is absent")
        if name in (RMS, NORM):
            hyper.fields.number(name)


def needs_heads(hyper: Hyper) -> None:
    """Raise Refused where there are no attention heads to make tensors for."""
    if not any(hyper.heads):
        message = f"{hyper.fields.key('attention.head_count')} is absent or 0"
        raise refuse(hyper.fields, "attention.head_count", message, aborts=True)


def plain(*required: str, traits: Iterable[Trait] = ()) -> Callable[[Hyper], LlamaModel]:
    """Return how an architecture is read whose every layer keeps every token."""
    asked = frozenset(traits)

    def implied(hyper: Hyper) -> LlamaModel:
        check(hyper, required)
        needs_heads(hyper)
        return full_layers(hyper, traits=asked)

    return implied


def full_layers(hyper: Hyper, *, traits: Iterable[Trait] = ()) -> LlamaModel:
    """Return a model whose every trunk layer keeps every token."""
    layers = tuple(
        Layer(index=index, stores=(hyper.full(index),) if hyper.kv_heads[index] else ())
        for index in range(hyper.trunk)
    )
    hollow = tuple(layer.index for layer in layers if not layer.stores)
    return hyper.model(layers, traits=traits, hollow=hollow)


def windowed(window: Window, *required: str) -> Callable[[Hyper], LlamaModel]:
    """Return how an architecture is read some of whose layers have a window."""

    def implied(hyper: Hyper) -> LlamaModel:
        check(hyper, required)
        needs_heads(hyper)
        found = windows(hyper, window)
        if found is None:
            return full_layers(hyper)
        tokens, pattern = found
        layers = tuple(
            Layer(index=index, stores=(attention(hyper, index, tokens, pattern, window),))
            for index in range(hyper.trunk)
        )
        return hyper.model(layers, windowed=pattern)

    return implied


def attention(
    hyper: Hyper, index: int, tokens: int, pattern: Sequence[bool], window: Window
) -> Store:
    """Return what one layer of a model with windows keeps."""
    if not pattern[index]:
        return hyper.full(index)
    kind = Chunked if window.chunked else Sliding
    return kind(
        kv_heads=hyper.kv_heads[index],
        key_length=hyper.key_length_swa,
        value_length=hyper.value_length_swa,
        window_tokens=tokens,
    )


def windows(hyper: Hyper, window: Window) -> tuple[int, tuple[bool, ...]] | None:
    """Return the window's tokens and which blocks have it; ``None`` for no window.

    Raises Refused where the key is required and absent, and where llama.cpp asserts
    that some layer has the window.
    """
    if window.only_at is not None and hyper.trunk != window.only_at:
        return None
    stored = hyper.fields.integer("attention.sliding_window")
    tokens = window.when_absent if stored is None else stored
    if tokens is None:
        tokens = require(hyper.fields, "attention.sliding_window")
    if tokens == 0 and (window.zero_is_none or stored is None):
        return None
    pattern = _pattern(hyper, window)
    if not any(pattern):
        message = (
            f"{hyper.fields.key('attention.sliding_window')} is set, but no layer has a window"
        )
        raise refuse(hyper.fields, "attention.sliding_window_pattern", message, aborts=True)
    return tokens if window.fixed is None else window.fixed, pattern


def _pattern(hyper: Hyper, window: Window) -> tuple[bool, ...]:
    name = "attention.sliding_window_pattern"
    period = window.period
    if window.reads_pattern:
        stored = flags(hyper, name)
        if stored is not None:
            return stored
        if period is None:
            raise refuse(hyper.fields, name, f"{hyper.fields.key(name)} is absent or no array")
        scalar = hyper.fields.integer(name)
        period = period if scalar is None else scalar
    assert period is not None  # noqa: S101 - a Window without period reads the pattern
    dense = 0 if window.dense_first else period - 1
    return tuple(
        index < hyper.trunk and (period == 0 or index % period != dense)
        for index in range(hyper.blocks)
    )


def flags(hyper: Hyper, name: str) -> tuple[bool, ...] | None:
    """Return an array of flags, one per block; ``None`` where it isn't an array.

    llama.cpp copies it into zeroed memory without a look at its length
    (``get_arr`` in src/llama-model-loader.cpp): what is missing is false, what is
    beyond the last block is never read.
    """
    found = hyper.fields.find(name)
    if found is None or not isinstance(found.value, Array | tuple):
        return None
    count = len(found.value)
    if count > MAX_LAYERS:
        raise refuse(hyper.fields, name, f"{found.key} has {count} items, at most {MAX_LAYERS}")
    items = hyper.fields.items(name) or ()
    if not _are_flags(found) or not all(isinstance(item, int) for item in items):
        raise refuse(hyper.fields, name, f"{found.key} is no array of flags or integers")
    padded = tuple(bool(item) for item in items) + (False,) * hyper.blocks
    return padded[: hyper.blocks]


def _are_flags(found: Field) -> bool:
    if not isinstance(found.value, Array):
        return True
    return found.value.item_type in (ValueType.BOOL, ValueType.UINT32, ValueType.INT32)

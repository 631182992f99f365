"""How the layers of a file differ from those of a right conversion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gguf_audit import arch
from gguf_audit.errors import AuditError
from gguf_audit.evidence import Conversion, Model
from gguf_audit.fields import Fields, Value
from gguf_audit.gguf import Scalar
from gguf_audit.layout import (
    AttentionStore,
    CacheLayout,
    Chunked,
    Full,
    Latent,
    Layer,
    Recurrent,
    Sliding,
    Store,
)
from gguf_audit.parts import Absent
from gguf_audit.runtime import llama_cpp

__all__ = [
    "COMPARED_TOKENS",
    "Costs",
    "Pair",
    "Windows",
    "attention",
    "cost",
    "costs",
    "differing_keys",
    "kept_bytes",
    "mebibytes",
    "named",
    "pairs",
    "state",
    "window",
    "windows",
]

#: Context length at which messages state what a difference costs: long enough for a
#: window to show, short enough that most models are trained for it.
COMPARED_TOKENS = 32768


class Pair(Struct, frozen=True):
    """One layer as the file implies it, and as a right conversion would."""

    index: int
    implied: Layer
    expected: Layer


def pairs(conversion: Conversion) -> Iterator[Pair]:
    """Yield the layers that both sides have; nothing where a side isn't known.

    A different number of layers is ARCH002's cause, not a difference of layers.
    """
    implied, expected = conversion.model.implied, conversion.expected
    if isinstance(implied, CacheLayout) and isinstance(expected, CacheLayout):
        for ours, theirs in zip(implied.layers, expected.layers, strict=False):
            yield Pair(ours.index, ours, theirs)


def attention(layer: Layer) -> AttentionStore | None:
    """Return the layer's attention store, ``None`` where it has none of its own."""
    for store in layer.stores:
        if isinstance(store, Full | Sliding | Chunked | Latent):
            return store
    return None


def state(layer: Layer) -> Recurrent | None:
    """Return the layer's recurrent state, ``None`` where it has none."""
    return next((store for store in layer.stores if isinstance(store, Recurrent)), None)


def window(layer: Layer) -> int | None:
    """Return the tokens of the layer's window, ``None`` where it has none."""
    return next((tokens for store in layer.stores if (tokens := _tokens(store)) is not None), None)


def _tokens(store: Store) -> int | None:
    return store.window_tokens if isinstance(store, Sliding | Chunked | Latent) else None


class Windows(Struct, frozen=True):
    """The windows of one layer in tokens, ``None`` where it keeps every token."""

    index: int
    implied: int | None
    expected: int | None


def windows(conversion: Conversion) -> list[Windows]:
    """Return both windows of each layer that attends on both sides.

    A window that a model's whole training context fits into is none.
    """
    fields = conversion.expected_fields
    context = _integer(fields, "context_length") if isinstance(fields, Fields) else None
    return [
        Windows(pair.index, _bounded(pair.implied, context), _bounded(pair.expected, context))
        for pair in pairs(conversion)
        if attention(pair.implied) is not None and attention(pair.expected) is not None
    ]


def _bounded(layer: Layer, context: int | None) -> int | None:
    tokens = window(layer)
    return None if tokens is None or (context and tokens >= context) else tokens


def _integer(fields: Fields, name: str) -> int | None:
    found = fields.find(name)
    return found.value if found is not None and isinstance(found.value, int) else None


def named(layers: Sequence[int], total: int) -> str:
    """Say which layers: ``all 27 layers``, ``layer 5``, ``3 of 18 layers (5, 11, 17)``."""
    if len(layers) == total:
        return f"all {total} layers"
    if len(layers) == 1:
        return f"layer {layers[0]}"
    shown = ", ".join(str(index) for index in layers[:8])
    more = ", ..." if len(layers) > 8 else ""
    return f"{len(layers)} of {total} layers ({shown}{more})"


def kept_bytes(model: Model, tokens: int = COMPARED_TOKENS) -> int | None:
    """Bytes llama.cpp keeps for the file at ``tokens``, ``None`` where it refuses."""
    try:
        return llama_cpp.plan(model.fields, context=tokens).total_bytes
    except AuditError:
        return None


def differing_keys(conversion: Conversion, names: Sequence[str]) -> tuple[str, ...]:
    """Return, in full, the keys among ``names`` whose effective values differ."""
    fields, wanted = conversion.model.fields, conversion.expected_fields
    if isinstance(wanted, Absent):
        return ()
    return tuple(
        fields.key(name)
        for name in names
        if _value(arch.effective(fields, name)) != _value(arch.effective(wanted, name))
    )


def _value(found: Value[Scalar | tuple[Scalar, ...]] | None) -> object:
    return None if found is None else found.value


def mebibytes(count: int) -> str:
    """Return bytes as MiB: ``111 MiB``, ``50.25 MiB``, ``8,640 MiB``."""
    whole, rest = divmod(count, 1 << 20)
    if rest == 0:
        return f"{whole:,} MiB"
    return f"{count / (1 << 20):,.2f} MiB"


class Costs(Struct, frozen=True, kw_only=True):
    """Bytes of cache at ``COMPARED_TOKENS``."""

    implied: int
    #: Of a right conversion.
    right: int
    #: Of this file's heads, were every layer to keep every token.
    full: int
    #: A right conversion keeps less than its own full attention would.
    saves: bool


def costs(conversion: Conversion) -> Costs | None:
    """Return what both sides keep, ``None`` where one isn't known or is refused."""
    expected_fields = conversion.expected_fields
    implied = kept_bytes(conversion.model)
    if implied is None or isinstance(expected_fields, Absent):
        return None
    try:
        right = llama_cpp.plan(expected_fields, context=COMPARED_TOKENS).total_bytes
        saves = right < llama_cpp.full_attention_bytes(expected_fields, COMPARED_TOKENS)
        full = llama_cpp.full_attention_bytes(conversion.model.fields, COMPARED_TOKENS)
    except AuditError:
        return None
    return Costs(implied=implied, right=right, full=full, saves=saves)


def cost(conversion: Conversion) -> str:
    """Say what the difference costs at ``COMPARED_TOKENS``, behind a colon.

    "" where it can't be said.
    """
    found = costs(conversion)
    if found is None:
        return ""
    equal = ", equal to full attention" if found.saves and found.implied == found.full else ""
    return (
        f": {mebibytes(found.implied)} of cache at {COMPARED_TOKENS} tokens{equal}, "
        f"where a right conversion keeps {mebibytes(found.right)}"
    )

"""The number or the size of the key and value heads is not the model's.

## What it does
Compares, layer by layer, key-value heads and the elements of one head's key and value with
those of a right conversion, as llama.cpp computes them: an absent `head_count_kv` means as
many as query heads, an absent `key_length` means embedding / heads. Where a right
conversion has no such key either, `head_count` is what went wrong.

## Why it matters
The cache has another size, and with tensors of the right shape the file doesn't load, or
loads only where the default happens to fit.

## Fix
A key that is present can be set in place with `gguf-set-metadata`; an absent one needs a
new conversion. So do heads that the tensors have no room for: setting the key alone breaks
such a file, and most often the reference is not this file's.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (`n_head_kv`, `n_embd_head_k`);
the checkpoint's `num_key_value_heads` and `head_dim`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Fields, Origin
from gguf_audit.gguf import Field
from gguf_audit.layout import AttentionStore, Latent
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    OnConversion,
    Outcome,
    Reconvert,
    Repair,
    Rule,
    SetKey,
    Severity,
)
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import Pair, attention, cost, differing_keys, named, pairs, window

#: What is compared: name in messages, attribute of the store, metadata key.
PROPERTIES = (
    ("key-value heads", "kv_heads", "attention.head_count_kv"),
    ("elements of a head's key", "key_length", "attention.key_length"),
    ("elements of a head's value", "value_length", "attention.value_length"),
)

HEADS = "attention.head_count"
WIDTH = "embedding_length"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each property that differs."""
    del settings
    told: set[str] = set()
    for title, attribute, name in PROPERTIES:
        compared = [_Compared.of(pair, attribute) for pair in pairs(conversion)]
        differing = [layer for layer in compared if layer.actual != layer.expected]
        if not differing:
            continue
        key = _cause(conversion, name, compared)
        if key not in told:
            told.add(key)
            yield _hit(conversion, key, title, compared)


class _Compared(Struct, frozen=True):
    """One property of one layer; ``None`` on both sides where there is nothing to compare."""

    index: int
    actual: int | None
    expected: int | None
    windowed: bool

    @classmethod
    def of(cls, pair: Pair, attribute: str) -> _Compared:
        ours, theirs = attention(pair.implied), attention(pair.expected)
        if ours is None or theirs is None or not _comparable(ours, theirs):
            return cls(pair.index, None, None, windowed=False)
        return cls(
            pair.index,
            getattr(ours, attribute),
            getattr(theirs, attribute),
            windowed=window(pair.implied) is not None,
        )


def _cause(conversion: Conversion, name: str, compared: list[_Compared]) -> str:
    """Return the key that makes a property differ."""
    fields, expected = conversion.model.fields, conversion.expected_fields
    written = () if isinstance(expected, Absent) else expected
    swa = f"{name}_swa"
    if all(layer.windowed for layer in compared if layer.actual != layer.expected) and (
        swa in fields or swa in written
    ):
        return swa
    if name in fields or name in written:
        return name
    # A head without a length of its own is a share of the embedding.
    return WIDTH if differing_keys(conversion, (WIDTH,)) else HEADS


def _hit(conversion: Conversion, key: str, title: str, compared: list[_Compared]) -> Hit:
    fields = conversion.model.fields
    differing = [layer for layer in compared if layer.actual != layer.expected]
    first = differing[0]
    found = arch.effective(fields, key)
    field = fields.find(key)
    layers = named([layer.index for layer in differing], len(compared))
    return Hit(
        message=(
            f"needs {_counted(first.expected, title)} on {layers}, this file makes it {first.actual} "
            f"({fields.key(key)} {'is absent' if field is None else 'says so'}){cost(conversion)}"
        ),
        where=Where(key=fields.key(key), layer=first.index),
        expected=first.expected,
        actual=first.actual,
        origin=Origin.RUNTIME_DEFAULT if found is None else found.origin,
        level=Severity.ERROR,
        repair=(
            _repair(conversion, key, compared)
            if _fits(conversion, first.index)
            else Reconvert(hint="or name the right reference")
        ),
    )


def _counted(number: int | None, title: str) -> str:
    return f"1 {title.replace('heads', 'head')}" if number == 1 else f"{number} {title}"


def _fits(conversion: Conversion, index: int) -> bool:
    """Tell whether a layer's projections have the rows that the right heads need, if any."""
    right = next(attention(pair.expected) for pair in pairs(conversion) if pair.index == index)
    if right is None or isinstance(right, Latent):
        return True
    rows = {
        "attn_k": right.kv_heads * right.key_length,
        "attn_v": right.kv_heads * right.value_length,
    }
    tensors = conversion.model.gguf.tensors
    found = {name: tensors.get(f"blk.{index}.{name}.weight") for name in rows}
    return all(
        tensor is None or tensor.shape[1:] == (rows[name],) for name, tensor in found.items()
    )


def _repair(conversion: Conversion, key: str, compared: list[_Compared]) -> Repair:
    """Set a scalar in place, where one number is right on all layers that it counts for."""
    field = conversion.model.fields.find(key)
    if key in (WIDTH, HEADS):
        # Not the length of a head, but what it is a share of.
        return _repair_of_share(field, conversion.expected_fields, key)
    of_windows = key.endswith("_swa")
    wanted = {
        layer.expected
        for layer in compared
        if layer.expected is not None and (layer.windowed or not of_windows)
    }
    if field is None or not isinstance(field.value, int) or len(wanted) > 1:
        return Reconvert()
    return SetKey(key=field.key, value=next(iter(wanted)), present=True)


def _repair_of_share(field: Field | None, wanted: Fields | Absent, key: str) -> Repair:
    right = None if isinstance(wanted, Absent) else wanted.find(key)
    if field is None or right is None:
        return Reconvert()
    if not isinstance(field.value, int) or not isinstance(right.value, int):
        return Reconvert()
    return SetKey(key=field.key, value=right.value, present=True)


def _comparable(ours: AttentionStore, theirs: AttentionStore) -> bool:
    """Tell whether both are latents or none is: the rest is another rule's cause."""
    return isinstance(ours, Latent) == isinstance(theirs, Latent)


RULE = Rule(
    id="KV106",
    name="kv-heads-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    defers_to=("KV105",),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams; config.json "
    "num_key_value_heads, head_dim",
)

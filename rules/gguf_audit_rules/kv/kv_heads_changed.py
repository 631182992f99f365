"""The number or the size of the key and value heads is not the model's.

## What it does
Compares, layer by layer, key-value heads and the elements of one head's key and value with
those of a right conversion, as llama.cpp computes them: an absent `head_count_kv` means as
many as query heads, an absent `key_length` means embedding / heads.

## Why it matters
The cache has another size, and with tensors of the right shape the file doesn't load, or
loads only where the default happens to fit.

## Fix
A key that is present can be set in place with `gguf-set-metadata`; an absent one needs a
new conversion.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (`n_head_kv`, `n_embd_head_k`);
the checkpoint's `num_key_value_heads` and `head_dim`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.layout import AttentionStore
from gguf_audit.rule import (
    Hit,
    Need,
    OnConversion,
    Outcome,
    Reconvert,
    Rule,
    SetKey,
    Severity,
)
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import Pair, attention, cost, named, pairs

#: What is compared: name in messages, attribute of the store, metadata key.
PROPERTIES = (
    ("key-value heads", "kv_heads", "attention.head_count_kv"),
    ("elements of a head's key", "key_length", "attention.key_length"),
    ("elements of a head's value", "value_length", "attention.value_length"),
)


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each property that differs."""
    del settings
    compared = list(pairs(conversion))
    for title, attribute, key in PROPERTIES:
        yield from _property(conversion, compared, title, attribute, key)


def _property(
    conversion: Conversion, compared: list[Pair], title: str, attribute: str, key: str
) -> Iterator[Outcome]:
    fields = conversion.model.fields
    differing = [
        (pair.index, actual, expected)
        for pair in compared
        if (ours := attention(pair.implied)) and (theirs := attention(pair.expected))
        if _comparable(ours, theirs)
        if (actual := getattr(ours, attribute)) != (expected := getattr(theirs, attribute))
    ]
    if not differing:
        return
    first, actual, expected = differing[0]
    found = arch.effective(fields, key)
    field = fields.find(key)
    scalar = field is not None and isinstance(field.value, int)
    layers = named([index for index, _, _ in differing], len(compared))
    yield Hit(
        message=(
            f"needs {expected} {title} on {layers}, this file makes it {actual} "
            f"({fields.key(key)} {'is absent' if field is None else 'says so'}): "
            f"{cost(conversion)}"
        ),
        where=Where(key=fields.key(key), layer=first),
        expected=expected,
        actual=actual,
        origin=None if found is None else found.origin,
        level=Severity.ERROR,
        repair=(
            SetKey(key=fields.key(key), value=expected, present=True) if scalar else Reconvert()
        ),
    )


def _comparable(ours: AttentionStore, theirs: AttentionStore) -> bool:
    """Tell a latent against unpacked heads, another rule's cause, from the rest."""
    latent = {type(store).__name__ for store in (ours, theirs)}
    return "Latent" not in latent or len(latent) == 1


RULE = Rule(
    id="KV106",
    name="kv-heads-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams; config.json "
    "num_key_value_heads, head_dim",
)

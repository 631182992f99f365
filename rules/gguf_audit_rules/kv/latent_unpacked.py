"""The file makes the runtime unpack the latent of multi-head latent attention.

## What it does
Looks for layers that keep one compressed row per token in a right conversion, but keys and
values of every head in this file.

## Why it matters
The output is right, the memory is not: DeepSeek-V2-Lite needs 8,640 MiB of cache at 32K
tokens instead of 972 MiB, DeepSeek-V3 far more. llama.cpp loads such a file without a word.

## Fix
Reconvert: files from before MLA support (`attn_kv_b` instead of `attn_k_b` and `attn_v_b`,
no `*_mla` keys) hold the up-projection in another form, which no metadata tool can change.

## Authority
llama.cpp b11434, `src/models/deepseek2.cpp` and `llama_hparams::is_mla`; DeepSeek-V2
(arXiv 2405.04434), section 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.layout import Full, Latent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import attention, cost, named, pairs

KEY = "attention.key_length_mla"
#: Keys that say other things where heads are kept unpacked.
TOGETHER = (
    "attention.value_length_mla",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
)


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all layers whose latent is unpacked."""
    del settings
    compared = list(pairs(conversion))
    unpacked = [
        (pair.index, ours, theirs)
        for pair in compared
        if isinstance(theirs := attention(pair.expected), Latent)
        if isinstance(ours := attention(pair.implied), Full)
    ]
    if not unpacked:
        return
    first, ours, theirs = unpacked[0]
    fields = conversion.model.fields
    layers = [index for index, _, _ in unpacked]
    wide = ours.kv_heads * (ours.key_length + ours.value_length)
    yield Hit(
        message=(
            f"needs a latent of {theirs.key_length} elements per token on "
            f"{named(layers, len(compared))}, this file keeps {ours.kv_heads} heads of "
            f"{ours.key_length} + {ours.value_length} elements{cost(conversion)}"
        ),
        where=Where(key=fields.key(KEY), layer=first),
        expected=theirs.key_length,
        actual=wide,
        unit="element",
        origin=Origin.KEY if KEY in fields else Origin.RUNTIME_DEFAULT,
        level=Severity.ERROR,
        repair=Reconvert(hint="made before llama.cpp could keep the latent"),
        also=tuple(map(fields.key, TOGETHER)),
    )


RULE = Rule(
    id="KV102",
    name="latent-unpacked",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    defers_to=("ARCH009",),
    authority="llama.cpp b11434 src/models/deepseek2.cpp, llama_hparams::is_mla; arXiv 2405.04434",
)

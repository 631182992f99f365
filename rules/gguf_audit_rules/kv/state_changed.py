"""A recurrent layer keeps another state than the model has.

## What it does
Compares the recurrent state of each layer (convolution and state-space parts) with that of
a right conversion: which layers have one, and how many elements.

## Why it matters
A recurrent layer without its state keeps keys and values of every token instead, and one
with a state of another size doesn't run the model that was trained. Most such files are
refused on load; where they load, the memory and the output are wrong.

## Fix
Reconvert: the keys belong together with the tensors' shapes.

## Authority
llama.cpp b11434, `src/llama-hparams.cpp: n_embd_r, n_embd_s`; the architecture's
`load_arch_hparams` for which layers are recurrent.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import cost, differing_keys, named, pairs, state

#: Keys of which a state is made, and which say where there is one.
KEYS = (
    "ssm.conv_kernel",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.group_count",
    "ssm.time_step_rank",
    "shortconv.l_cache",
    "kda.head_dim",
    "wkv.head_size",
    "token_shift_count",
    "attention.recurrent_layers",
    "full_attention_interval",
    "attention.head_count",
    "attention.head_count_kv",
    "embedding_length",
    "feed_forward_length",
)


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all layers whose state differs."""
    del settings
    compared = list(pairs(conversion))
    differing: list[tuple[int, int, int]] = []
    for pair in compared:
        ours, theirs = state(pair.implied), state(pair.expected)
        kept = 0 if ours is None else ours.elements
        wanted = 0 if theirs is None else theirs.elements
        if kept != wanted:
            differing.append((pair.index, kept, wanted))
    if not differing:
        return
    first, kept, wanted = differing[0]
    keys = differing_keys(conversion, KEYS)
    layers = named([index for index, _, _ in differing], len(compared))
    yield Hit(
        message=(
            f"needs a recurrent state of {wanted:,} elements on {layers}, this file makes it "
            f"{kept:,}{cost(conversion)}"
        ),
        where=Where(key=keys[0] if keys else None, layer=first),
        expected=wanted,
        actual=kept,
        unit="element",
        level=Severity.ERROR,
        repair=Reconvert(),
        also=keys[1:],
    )


RULE = Rule(
    id="KV105",
    name="state-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    authority="llama.cpp b11434 src/llama-hparams.cpp n_embd_r, n_embd_s",
)

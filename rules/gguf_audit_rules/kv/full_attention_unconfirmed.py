"""A model of a memory-saving architecture keeps every token, and no reference says why.

## What it does
Without a reference: knows architectures all of whose published models have a sliding
window, a latent or a recurrent state, and reports a file of one of these that makes
llama.cpp keep full attention.

## Why it matters
This is what a lost key looks like from inside the file: Gemma 3 without its
`sliding_window` needs 576 MiB of cache where 111 MiB would do, and DeepSeek files from
before MLA support need nine times the memory. llama.cpp says nothing.

## Fix
Confirm it against the checkpoint: `gguf-audit check FILE --against OWNER/REPO`. Then
reconvert.

## Authority
llama.cpp b11434, the architecture's `load_arch_hparams`; the published configurations of
the architecture's models.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.layout import CacheLayout, Full
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import COMPARED_TOKENS, kept_bytes, mebibytes

#: What an architecture saves with -> what its models have, the keys that hold it.
SAVINGS = {
    "window": ("a sliding window", ("attention.sliding_window",)),
    "latent": ("a latent (MLA)", ("attention.key_length_mla",)),
    "state": ("recurrent layers", ("full_attention_interval", "attention.head_count_kv")),
}


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if every layer keeps every token although none of its kind does."""
    if settings.has_expected_layout or isinstance(model.architecture, Absent):
        return
    savings = model.architecture.savings(model.fields)
    saves = [SAVINGS[name] for name in SAVINGS if name in savings]
    if not saves or not isinstance(model.implied, CacheLayout):
        return
    stores = [store for _, store in model.implied.stores()]
    if not stores or not all(isinstance(store, Full) for store in stores):
        return
    has, keys = saves[0]
    key = next((key for key in keys if arch.reads(model.fields.architecture, key)), keys[0])
    kept = kept_bytes(model)
    amount = "" if kept is None else f", {mebibytes(kept)} at {COMPARED_TOKENS} tokens"
    full_key = model.fields.key(key)
    present = key in model.fields
    yield Hit(
        message=(
            f"every known {model.fields.architecture} model has {has}, this file makes "
            f"llama.cpp keep full attention on all {len(model.implied.layers)} layers{amount}: "
            f"{full_key} is {'not in effect' if present else 'absent'}"
        ),
        where=Where(key=full_key),
        expected=has,
        actual="full attention",
        origin=Origin.KEY if present else Origin.RUNTIME_DEFAULT,
        level=Severity.WARNING,
        repair=Reconvert(hint="confirm first: gguf-audit check FILE --against OWNER/REPO"),
    )


RULE = Rule(
    id="KV107",
    name="full-attention-unconfirmed",
    levels=(Severity.WARNING,),
    check=OnModel(check),
    defers_to=("ARCH003", "ARCH009"),
    authority="llama.cpp b11434 load_arch_hparams of the architecture",
)

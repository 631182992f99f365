"""llama.cpp refuses the file's metadata, or dies of it.

## What it does
Reads the architecture's hyper-parameters as llama.cpp's loader does: required keys, value
types, array lengths, and the combinations that end in an assertion.

## Why it matters
The file doesn't load. Where an assertion fails, the server process dies without a message
that names the key.

## Fix
Reconvert with a current converter, or set the key that is named.

## Authority
llama.cpp b11434, `src/llama-model-loader.cpp: get_key, get_key_or_arr` and the
architecture's `load_arch_hparams`; measured by removing one key at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.errors import Refused
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity

#: Keys that llama.cpp checks against each other: any of a group may be the wrong one.
TOGETHER = (
    ("expert_count", "expert_used_count", "expert_group_count", "expert_group_used_count"),
    (
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.key_length_mla",
        "attention.key_length_swa",
        "attention.kv_lora_rank",
        "attention.value_length",
        "attention.value_length_mla",
        "attention.value_length_swa",
        "embedding_length",
        "rope.dimension_count",
    ),
)
#: Arrays have an item for each block, and some variants are known by their number.
BLOCKS = ("block_count", "nextn_predict_layers")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if llama.cpp wouldn't load the metadata."""
    del settings
    if not isinstance(model.implied, Refused):
        return
    verdict = "dies of it" if model.implied.kind == "aborts" else "refuses the file"
    yield Hit(
        message=f"{model.implied.message}: llama.cpp {verdict}",
        where=model.implied.where,
        expected="metadata that llama.cpp loads",
        actual=model.implied.kind,
        level=Severity.ERROR,
        repair=Reconvert(),
        also=_also(model),
    )


def _also(model: Model) -> tuple[str, ...]:
    """Return the keys that could as well be the ones to blame."""
    refused = model.implied
    if not isinstance(refused, Refused) or refused.where.key is None:
        return ()
    name = refused.where.key.removeprefix(model.fields.key(""))
    together = next((group for group in TOGETHER if name in group), ())
    return tuple(model.fields.key(other) for other in (*together, *BLOCKS) if other != name)


RULE = Rule(
    id="ARCH004",
    name="load-refused",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("ARCH002", "ARCH003", "ARCH005", "ARCH006", "ARCH007", "CTX", "KV102", "KV106"),
    authority="llama.cpp b11434 src/llama-model-loader.cpp get_key, get_key_or_arr",
)

"""An adapter has tensors that llama.cpp reads over.

## What it does
Looks for norms in an adapter: whole tensors that replace the model's, beside the pairs.

## Why it matters
The converter writes them (`modules_to_save`, mergekit), llama.cpp skips them without a word:
that part of what was trained has no effect.

## Fix
Merge the adapter into its model and convert that.

## Authority
llama.cpp b11434, `src/llama-adapter.cpp: llama_adapter_lora_init_impl`,
`convert_lora_to_gguf.py: get_tensors`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.lora import pairs_of
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import listed


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all norms."""
    del settings
    norms = pairs_of(companion.gguf).norms
    if norms:
        yield Hit(
            message=f"llama.cpp takes only pairs from an adapter, {listed(norms)} have no effect",
            where=Where(tensor=norms[0]),
            actual=list(norms),
            level=Severity.WARNING,
            repair=Reconvert(hint="after merging the adapter into its model"),
        )


RULE = Rule(
    id="PKG043",
    name="adapter-tensor-ignored",
    levels=(Severity.WARNING,),
    check=OnCompanion(check, kinds=("adapter",)),
    authority="llama.cpp b11434 src/llama-adapter.cpp llama_adapter_lora_init_impl, "
    "convert_lora_to_gguf.py get_tensors",
)

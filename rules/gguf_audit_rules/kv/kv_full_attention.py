"""The file's cache equals full attention, a right conversion's doesn't.

## What it does
Compares the bytes that llama.cpp keeps for this file with those of full attention (every
layer keeps every token, latents unpacked) and with those of a right conversion. Where a
rule that knows the cause speaks too, this one only adds to it.

## Why it matters
The architecture's way to save memory is lost as a whole: windows, latent or recurrent
state. The file runs, exits 0 and prints no warning, and needs several times the memory.

## Fix
Reconvert with a current converter.

## Authority
llama.cpp b11434, `src/llama-kv-cache.cpp: llama_kv_cache`, measured with
`llama_get_memory_breakdown`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv._layers import COMPARED_TOKENS, costs, mebibytes


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if all that the architecture saves is lost."""
    del settings
    found = costs(conversion)
    # More heads than there should be also cost more, but save nothing less.
    if found is None or found.implied < found.full or not found.saves:
        return
    yield Hit(
        message=(
            f"needs {mebibytes(found.right)} of cache at {COMPARED_TOKENS} tokens, this file makes "
            f"llama.cpp keep {mebibytes(found.implied)}, equal to full attention"
        ),
        where=Where(),
        expected=found.right,
        actual=found.implied,
        unit="byte",
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="KV101",
    name="kv-full-attention",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.LAYOUT}),
    defers_to=("KV102", "KV103", "KV104", "KV105", "KV106", "ARCH002"),
    echoes=True,
    authority="llama.cpp b11434 src/llama-kv-cache.cpp llama_kv_cache",
)

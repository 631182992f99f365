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
    )


RULE = Rule(
    id="ARCH004",
    name="load-refused",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("CTX001", "KV106", "ARCH003", "ARCH005"),
    authority="llama.cpp b11434 src/llama-model-loader.cpp get_key, get_key_or_arr",
)

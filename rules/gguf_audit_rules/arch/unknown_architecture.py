"""llama.cpp doesn't know the file's architecture.

## What it does
Looks `general.architecture` up in the table of llama.cpp b11434. A file without a tokenizer and
without any tensor of a language model (`token_embd`, `blk.0.`) is none, as image models and audio
codecs are, and is left alone unless its architecture is in that table.

## Why it matters
llama.cpp refuses the file with `unknown model architecture`. If the name is newer than that
build, the file may be fine, but neither its cache nor its hyper-parameters were audited.

## Fix
Check the spelling, use the engine that the file was made for, or update gguf-audit.
`--allow-unknown` accepts such files, with what could be checked.

## Authority
llama.cpp b11434, `src/llama-arch.cpp: LLM_ARCH_NAMES`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

KEY = "general.architecture"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the architecture is missing or unknown."""
    del settings
    if not isinstance(model.architecture, Absent):
        return
    name = model.gguf.architecture
    if name is None:
        if not model.gguf.tensors:
            return  # Nothing to run: an empty container is no broken model.
        state = "no string" if KEY in model.gguf.fields else "absent"
        message = f"needs an architecture's name, {KEY} is {state}: no runtime loads this file"
    else:
        message = f"needs an architecture that llama.cpp b11434 knows, {KEY} is {name!r}"
    yield Hit(
        message=message,
        where=Where(key=KEY),
        expected="a name in llama.cpp's table",
        actual=name,
        level=Severity.ERROR if name is None else Severity.WARNING,
    )


RULE = Rule(
    id="ARCH001",
    name="unknown-architecture",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    defers_to=("ARCH005",),
    authority="llama.cpp b11434 src/llama-arch.cpp LLM_ARCH_NAMES",
)

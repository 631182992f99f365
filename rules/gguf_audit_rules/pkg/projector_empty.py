"""A projector file has no tensors.

## What it does
Looks for a single tensor in a file that calls itself a projector (mmproj).

## Why it matters
The converter calls such a file a success: a checkpoint whose tensors begin with
`model.vision_tower.` had none of them recognised. llama.cpp can't see or hear with it.

## Fix
Convert again with a converter that knows the names of this checkpoint's tensors.

## Authority
llama.cpp b11434, `conversion/llava.py: modify_tensors`; ggml-org/llama.cpp issue 24235.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for a file without tensors."""
    del settings
    if not companion.gguf.tensors:
        yield Hit(
            message="needs the tensors of an encoder and a projector, the file has none",
            where=Where(),
            expected="tensors",
            actual=0,
            unit="tensor",
            level=Severity.ERROR,
            repair=Reconvert(hint="with a converter that knows the names of these tensors"),
        )


RULE = Rule(
    id="PKG030",
    name="projector-empty",
    levels=(Severity.ERROR,),
    check=OnCompanion(check, kinds=("mmproj",)),
    authority="llama.cpp b11434 conversion/llava.py modify_tensors, ggml-org/llama.cpp issue 24235",
)

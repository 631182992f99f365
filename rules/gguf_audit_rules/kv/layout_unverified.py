"""The cache of this architecture was read from llama.cpp's source, never measured.

## What it does
Marks the few architectures for which llama.cpp makes no context by itself (drafts that
share another model's cache, or models whose graph can't be built), so that our figures
could not be held against its own.

## Why it matters
Every other figure is equal to llama.cpp's to the byte; this one may not be.

## Fix
None is needed. `--probe` asks the installed llama.cpp.

## Authority
llama.cpp b11434, `src/llama-model.cpp: create_memory` and `src/models`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

KEY = "general.architecture"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if nobody has measured what is kept for the architecture."""
    del settings
    if isinstance(model.architecture, Absent) or model.architecture.verified:
        return
    if not isinstance(model.implied, CacheLayout):
        return
    yield Hit(
        message=f"the cache of {model.fields.architecture} is known from llama.cpp's source "
        "alone, no run has confirmed it",
        where=Where(key=KEY),
        expected="a measured layout",
        actual="a layout read from source",
        level=Severity.INFO,
    )


RULE = Rule(
    id="KV110",
    name="layout-unverified",
    levels=(Severity.INFO,),
    check=OnModel(check),
    authority="llama.cpp b11434 src/llama-model.cpp create_memory",
)

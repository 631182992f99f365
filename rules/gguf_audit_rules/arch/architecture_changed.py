"""The file has another architecture than a right conversion of the reference.

## What it does
Compares `general.architecture` with the one that the converter writes for the reference.
If they differ nothing else of the two is compared.

## Why it matters
Most often the reference is not this file's. Otherwise the conversion took one model for
another, and llama.cpp runs the wrong graph.

## Fix
Name the right checkpoint with `--against`; if it is the right one, reconvert.

## Authority
llama.cpp b11434, `conversion/`: `model_arch` of the class that is registered for the
checkpoint's `architectures`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

KEY = "general.architecture"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the architectures differ."""
    del settings
    expected, actual = conversion.expected_architecture, conversion.model.gguf.architecture
    if isinstance(expected, Absent) or actual is None or actual == expected:
        return
    yield Hit(
        message=f"needs architecture {expected!r} for {conversion.checkpoint.id}, "
        f"{KEY} is {actual!r}",
        where=Where(key=KEY),
        expected=expected,
        actual=actual,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(first="name the right reference with --against"),
    )


RULE = Rule(
    id="ARCH005",
    name="architecture-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    any_reference=True,
    authority="llama.cpp b11434 conversion, model_arch of the registered class",
)

"""The file was made from another checkpoint than the reference.

## What it does
Compares the width of the model, `embedding_length`, with the reference's, where the file's own
`token_embd.weight` is as wide as the file says. If they differ nothing else of the two is
compared: every other size, window, token and tensor would only follow from that.

## Why it matters
No conversion changes a model's width, so the reference is not this file's: another size of the
same family, most often. Or the file is not what its name says.

## Fix
Name the right checkpoint with `--against`; if it is the right one, reconvert from it.

## Authority
llama.cpp b11434, `conversion/base.py: set_gguf_parameters` for `embedding_length`;
`src/llama-model.cpp`, `src/models/*.cpp` for `token_embd.weight`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the file is wider or narrower, in its tensors too."""
    del settings
    if conversion.widths is None:
        return
    expected, actual = conversion.widths
    key = conversion.model.fields.key("embedding_length")
    yield Hit(
        message=f"needs a width of {expected:,} for {conversion.checkpoint.id}, {key} is "
        f"{actual:,} and so is token_embd.weight: it was made from another checkpoint",
        where=Where(key=key),
        expected=expected,
        actual=actual,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(first="name the right reference with --against"),
    )


RULE = Rule(
    id="ARCH011",
    name="other-checkpoint",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    any_reference=True,
    authority="llama.cpp b11434 conversion/base.py set_gguf_parameters",
)

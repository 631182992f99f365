"""A projector's output is not as wide as the text model's input.

## What it does
Compares the width of what the projector puts in the place of tokens with what the reference's
text model takes there: `embedding_length`, times one and the number of layers that are fed
besides the first (deepstack). Each projector's width is read from the tensor that llama.cpp
reads it from; `projection_dim` is not looked at, neither here nor there.

## Why it matters
llama.cpp refuses the pair: `mismatch between text model and mmproj`.

## Fix
Take the projector that was made of the same checkpoint as the text model.

## Authority
llama.cpp b11434, `tools/mtmd/mtmd.cpp: mtmd_context`, `tools/mtmd/clip.cpp:
clip_n_mmproj_embd`, `src/llama-hparams.cpp: n_embd_inp`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.errors import Refused
from gguf_audit.evidence import Companion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, NoEvidence, OnCompanion, Outcome, Replace, Rule, Severity
from gguf_audit.runtime.clip import encodings, input_width, width_of
from gguf_audit.where import Where


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for the first encoder that doesn't fit."""
    del settings
    base = companion.base
    if isinstance(base, Absent):
        yield NoEvidence(f"the text model isn't known: {base.reason}")
        return
    try:
        wanted = input_width(base)
    except Refused as refused:
        yield NoEvidence(refused.message)
        return
    if wanted is None:
        return
    for encoding in encodings(companion.gguf):
        width = width_of(companion.gguf, encoding)
        if width is not None and width != wanted:
            name, _ = encoding.projector.width[0] if encoding.projector else ("", 0)
            yield Hit(
                message=(
                    f"the text model takes {wanted} numbers for each token,"
                    f" projector {encoding.type} gives {width}"
                ),
                where=Where(tensor=name or None),
                expected=wanted,
                actual=width,
                unit="number",
                level=Severity.ERROR,
                repair=Replace(),
                also=("v.deepstack" if encoding.type == "qwen3vl_merger" else "width",),
            )
            return


RULE = Rule(
    id="PKG035",
    name="projector-width-mismatch",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("mmproj",)),
    needs=frozenset({Need.REFERENCE}),
    defers_to=("PKG038",),
    authority="llama.cpp b11434 tools/mtmd/mtmd.cpp mtmd_context, "
    "tools/mtmd/clip.cpp clip_n_mmproj_embd, src/llama-hparams.cpp n_embd_inp",
)

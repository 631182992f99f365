"""A projector stands beside text models that it doesn't fit.

## What it does
Compares the width of a projector (mmproj) with that of every text model in the same folder,
as llama.cpp compares them: with the layers that are fed besides the first. One that fits
some of them is silent. No reference is needed.

## Why it matters
Programs take the projector that lies beside a model. llama.cpp refuses the pair. A text
model that was converted as one of another class, without the number of layers that the
projector feeds, is the most frequent reason besides a file of another size.

## Fix
Put the projector that was made of the same checkpoint beside the model, or convert the text
model as what it is.

## Authority
llama.cpp b11434, `tools/mtmd/mtmd.cpp: mtmd_context`, `tools/mtmd/clip.cpp:
clip_n_mmproj_embd`, `src/llama-hparams.cpp: n_embd_inp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gguf_audit.errors import Refused
from gguf_audit.evidence import PairSubject, SetMember, Settings
from gguf_audit.rule import Hit, OnPair, Outcome, Replace, Rule, Severity
from gguf_audit.runtime.clip import input_width
from gguf_audit.where import Where

#: Models named in a message before the rest is counted.
SHOWN = 3


def check(pair: PairSubject, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit where none of the models fits; a warning where they differ themselves."""
    del settings
    widths = {model.name: width for model in pair.models if (width := _width(model)) is not None}
    if not widths or any(width in pair.projector.widths for width in widths.values()):
        return
    gives = " and ".join(str(width) for width in dict.fromkeys(pair.projector.widths))
    takes = ", ".join(f"{Path(name).name} takes {widths[name]}" for name in list(widths)[:SHOWN])
    more = f" and {len(widths) - SHOWN} more don't fit" if len(widths) > SHOWN else ""
    one = len(set(widths.values())) == 1
    yield Hit(
        message=(
            f"needs a text model of the same width beside it, projector {pair.projector.type}"
            f" gives {gives} numbers for each token, {takes}{more}"
        ),
        where=Where(file=pair.projector.name),
        expected=sorted(set(widths.values())),
        actual=list(pair.projector.widths),
        unit="number",
        level=Severity.ERROR if one else Severity.WARNING,
        repair=Replace(),
    )


def _width(model: SetMember) -> int | None:
    try:
        return input_width(model.fields)
    except Refused:
        return None


RULE = Rule(
    id="PKG036",
    name="projector-fits-no-model",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnPair(check),
    authority="llama.cpp b11434 tools/mtmd/mtmd.cpp mtmd_context, "
    "tools/mtmd/clip.cpp clip_n_mmproj_embd, src/llama-hparams.cpp n_embd_inp",
)

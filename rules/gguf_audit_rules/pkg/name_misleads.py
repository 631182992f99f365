"""The file's name promises another width than the file says it has.

## What it does
Compares the quantization at the end of the file's name with `general.file_type`, by their
number of bits: `Q4_K_M`, `IQ4_XS` and `MXFP4` are 4, `BF16` is 16. Publishers' own labels such
as `Q4_K_L` are as good as any of that width. Dynamic quants (`UD-`) have layers of many widths
and are left out, and so is a file that keeps layers as they were published in 4 bits.

## Why it matters
People pick a file by its name: size, memory and quality follow from it. A name that was kept
while the file was quantized again, or the other way round, is believed.

## Fix
Rename the file, or quantize it to what its name says.

## Authority
GGUF naming convention (ggml `docs/gguf.md`, *Encoding*); `enum llama_ftype` in `include/llama.h`
of llama.cpp b11434.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.naming import label_of, width_of
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

_KEY = "general.file_type"
#: Published so by a model's maker, and kept whatever the rest becomes.
_KEPT = frozenset({"MXFP4", "NVFP4"})


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit where name and file type differ in their width."""
    del settings
    label = label_of(model.gguf.name)
    if label is None or label.dynamic or model.file_type is None:
        return
    promised, has = width_of(label.text), width_of(model.file_type)
    if promised is None or has is None or promised == has:
        return
    if any(tensor.type.name in _KEPT for tensor in model.gguf.tensors.values()):
        return
    yield Hit(
        message=(f"needs a file of {label.text} as its name says, {_KEY} is {model.file_type}"),
        where=Where(key=_KEY),
        expected=label.text,
        actual=model.file_type,
        level=Severity.INFO,
    )


RULE = Rule(
    id="PKG002",
    name="name-misleads",
    levels=(Severity.INFO,),
    check=OnModel(check),
    authority="ggml docs/gguf.md GGUF naming convention; llama.cpp b11434 include/llama.h",
)

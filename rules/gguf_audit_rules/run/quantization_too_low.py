"""Layers have fewer bits per weight than the policy allows.

## What it does
Adds up the bytes and the elements of all matrices inside the blocks and compares their bits
per weight with those of the quantization that the policy names (`quantization` under
`[budget]`). `Q4_K_M` means the 4.5 bits of `Q4_K`, of which it mostly consists. The
embedding and the output are left out, for they are often kept wider; names and
`general.file_type` are not believed.

## Why it matters
Below some width a model still answers, and worse: a limit that a team has measured for its
task must not be passed by picking another file.

## Fix
Take a file with more bits, or lower the limit.

## Authority
llama.cpp b11434, `ggml/src/ggml-common.h` for the bits of each type; the limit is the policy's.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, NoEvidence, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit where the layers are narrower than the policy allows."""
    budget = None if settings.policy is None else settings.policy.budget
    if budget is None or budget.least_bits is None:
        return
    size = elements = 0
    for name, tensor in model.gguf.tensors.items():
        if not (name.startswith("blk.") and name.endswith(".weight") and len(tensor.shape) > 1):
            continue
        if tensor.size_bytes is None:
            yield NoEvidence(
                f"bits per weight of {name}, a {tensor.type.name}, aren't known", "limit"
            )
            return
        size += tensor.size_bytes
        elements += tensor.elements
    least = budget.least_bits
    if size * 8 >= least * elements:
        return
    needed, found = _told(least.numerator, least.denominator), _told(size * 8, elements)
    yield Hit(
        message=(
            f"needs {needed} bits per weight in its layers as {budget.quantization} has, "
            f"has {found}"
        ),
        where=Where(),
        expected=f"{needed} bits per weight",
        actual=f"{found} bits per weight",
        level=Severity.ERROR,
    )


def _told(bits: int, weights: int) -> str:
    """Return bits per weight cut to hundredths, so that what is below a limit looks so."""
    whole, rest = divmod(bits * 100 // weights, 100)
    return f"{whole}.{rest:02}".rstrip("0").rstrip(".")


RULE = Rule(
    id="RUN012",
    name="quantization-too-low",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.POLICY}),
    authority="llama.cpp b11434 ggml/src/ggml-common.h; the policy",
)

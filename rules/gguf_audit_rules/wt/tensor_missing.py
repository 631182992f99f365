"""A tensor is missing without which llama.cpp doesn't load the model.

## What it does
Makes, from the metadata alone, the list of tensors that llama.cpp asks for: for the whole
model and for each block, whether it has attention, a recurrent state, experts or a dense
feed-forward part. Whatever llama.cpp does without is never on it: biases, scales, an output
projection that may be tied, blocks of multi-token prediction that were left out.

## Why it matters
llama.cpp stops at the first of them: `missing tensor`.

## Fix
Reconvert, or fetch the file again: no metadata tool can add a tensor.

## Authority
llama.cpp b11434, `load_arch_tensors` in `src/models/*.cpp`, `src/llama-model-loader.cpp:
create_tensor`; what it creates was enumerated and compared for 147 architectures.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, NoEvidence, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.subject import Absent
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import listed, places


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all that is missing."""
    del settings
    inventory = places(model)
    if isinstance(inventory, Absent):
        if inventory.reason:
            yield NoEvidence(inventory.reason)
        return
    missing = inventory.missing(model.gguf.tensors)
    if missing:
        names = [slot.name for slot in missing]
        yield Hit(
            message=f"llama.cpp needs {listed(names)}, absent from the file: it won't load",
            where=Where(tensor=names[0], layer=missing[0].layer),
            expected=names,
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(),
        )


RULE = Rule(
    id="WT001",
    name="tensor-missing",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("ARCH002", "ARCH003"),
    authority="llama.cpp b11434 src/models/*.cpp load_arch_tensors, "
    "src/llama-model-loader.cpp create_tensor",
)

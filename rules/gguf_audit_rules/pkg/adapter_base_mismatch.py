"""An adapter doesn't go with the model that it is held against.

## What it does
Given the model as reference, a GGUF file or its checkpoint, compares its architecture with
the adapter's, and each pair with the tensor that it is added to: that there is one, and that
A is as wide and B as high. On a model whose output projection is tied to the embedding, a
pair for the embedding is told too.

## Why it matters
llama.cpp refuses such an adapter: another architecture, a tensor that isn't in the model, an
incorrect shape. With a tied output it takes the pair for the embedding, applies it to the
output too, and aborts.

## Fix
Take the model that the adapter was trained on. An embedding that was trained on a tied model
has to be merged before converting.

## Authority
llama.cpp b11434, `src/llama-adapter.cpp: llama_adapter_lora_init_impl`, `src/llama-graph.cpp:
build_lora_mm`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnCompanion,
    Outcome,
    Reconvert,
    Replace,
    Rule,
    Severity,
)
from gguf_audit.runtime.lora import EMBEDDING, Pair, pairs_of
from gguf_audit.where import Where
from gguf_audit_rules.pkg._base import Base, at, base_of, sizes_differ
from gguf_audit_rules.wt._tensors import listed

OUTPUT = "output.weight"


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for another architecture, else one for each way of not fitting."""
    del settings
    gguf = companion.gguf
    if not isinstance(companion.checkpoint, Absent) and isinstance(companion.base, Absent):
        adapter = companion.checkpoint.adapter
        if not isinstance(adapter, Absent) and isinstance(companion.checkpoint.config, Absent):
            yield NoEvidence("whether it fits its model isn't known: give that with --against")
            return
    pairs = pairs_of(gguf).pairs
    base = base_of(companion, pairs)
    if isinstance(base, Absent):
        yield NoEvidence(f"the adapter's model isn't known: {base.reason}")
        return
    if gguf.architecture not in (None, base.architecture):
        yield Hit(
            message=f"the model is {base.architecture!r}, the adapter is for {gguf.architecture!r}",
            where=Where(key="general.architecture"),
            expected=base.architecture,
            actual=gguf.architecture,
            level=Severity.ERROR,
            repair=Replace(),
        )
        return
    absent = [name for name in pairs if base.has(name) is False]
    if absent:
        yield _hit(f"the model has no {listed(absent)}, which the adapter changes", absent)
    wrong = [name for name, pair in pairs.items() if _misfit(name, pair, base)]
    if wrong:
        yield _hit(f"needs the shapes of the model's tensors, others for {listed(wrong)}", wrong)
    if EMBEDDING in pairs and base.has(OUTPUT) is False and EMBEDDING not in wrong:
        yield Hit(
            message=f"the model's output is tied, llama.cpp aborts on a pair for {EMBEDDING}",
            where=Where(tensor=f"{EMBEDDING}.lora_a"),
            level=Severity.ERROR,
            repair=Reconvert(hint="after merging the embedding's part into the model"),
        )


def _misfit(name: str, pair: Pair, base: Base) -> bool:
    shape = base.shape(name)
    if shape is None or pair.a is None or pair.b is None:
        return False
    a, b = (*pair.a.shape, 1), (*pair.b.shape, 1)
    if name.endswith(EMBEDDING):
        return sizes_differ(at(shape, 0), b[1]) or sizes_differ(at(shape, 1), a[1])
    return sizes_differ(at(shape, 0), a[0]) or sizes_differ(at(shape, 1), b[1])


def _hit(message: str, names: list[str]) -> Hit:
    return Hit(
        message=message,
        where=Where(tensor=f"{names[0]}.lora_a"),
        actual=names,
        level=Severity.ERROR,
        repair=Replace(),
    )


RULE = Rule(
    id="PKG042",
    name="adapter-base-mismatch",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("adapter",)),
    needs=frozenset({Need.REFERENCE}),
    authority="llama.cpp b11434 src/llama-adapter.cpp llama_adapter_lora_init_impl, "
    "src/llama-graph.cpp build_lora_mm",
)

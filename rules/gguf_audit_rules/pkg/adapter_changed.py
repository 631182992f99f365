"""An adapter is not all that its reference was trained to be.

## What it does
Compares the file with the reference's `adapter_config.json` and `adapter_model.safetensors`:
as many parameters in lora_B (splitting, stacking and transposing keep their number), the
ranks that the configuration names, and nothing that a pair can't hold: magnitudes (DoRA),
trained biases, modules that were saved whole. The tokens that activate an aLoRA have to be
there.

## Why it matters
What isn't in the file isn't applied, and llama.cpp can't know that anything is missing.

## Fix
Convert the adapter again. What a pair can't hold has to be merged into the model.

## Authority
peft, `tuners/lora/config.py`; llama.cpp b11434, `convert_lora_to_gguf.py: get_tensors,
set_gguf_parameters`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gguf_audit.checkpoint import PeftAdapter
from gguf_audit.evidence import Companion, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnCompanion,
    Outcome,
    Reconvert,
    Rule,
    Severity,
)
from gguf_audit.runtime.lora import EMBEDDING, INVOCATION, pairs_of
from gguf_audit.where import Where

MERGE = Reconvert(hint="after merging the adapter into its model")
#: Halves of which the converter swaps some, transposing their tensor (conversion/deepseek.py).
TRANSPOSED = ".attn_k_b.weight"


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each part of the reference that the file doesn't have."""
    del settings
    adapter = companion.adapter
    if isinstance(adapter, Absent):
        yield NoEvidence(adapter.reason)
        return
    yield from _parts(adapter)
    yield from _invocation(companion.gguf, adapter)
    yield from _ranks(companion.gguf, adapter)
    yield from _parameters(companion.gguf, adapter)


def _parts(adapter: PeftAdapter) -> Iterator[Outcome]:
    """Yield a hit for each thing that no pair can hold."""
    config = adapter.config
    if config.get("use_dora") is True:
        yield _lost("the reference has magnitudes (use_dora), which a GGUF adapter can't hold")
    bias = config.get("bias")
    if isinstance(bias, str) and bias != "none":
        yield _lost(f"the reference has trained biases (bias={bias!r}), the file can't")
    saved = config.get("modules_to_save")
    if isinstance(saved, list) and saved:
        names = ", ".join(str(name) for name in saved[:4])
        yield _lost(f"the reference has whole modules (modules_to_save: {names}), the file can't")


def _lost(message: str) -> Hit:
    return Hit(message=message, where=Where(), level=Severity.ERROR, repair=MERGE)


def _invocation(gguf: Gguf, adapter: PeftAdapter) -> Iterator[Outcome]:
    tokens = adapter.config.get("alora_invocation_tokens")
    if not isinstance(tokens, list) or not tokens:
        return
    array = gguf.array(INVOCATION)
    stored = None if array is None else list(array.items())
    if stored != tokens:
        yield Hit(
            message=(
                f"needs the {len(tokens)} tokens that activate the adapter, {INVOCATION}"
                f" {'is absent: it is always active' if stored is None else f'is {stored}'}"
            ),
            where=Where(key=INVOCATION),
            expected=tokens,
            actual=stored,
            level=Severity.ERROR,
            repair=Reconvert(),
        )


def _ranks(gguf: Gguf, adapter: PeftAdapter) -> Iterator[Outcome]:
    rank = adapter.config.get("r")
    if not isinstance(rank, int) or adapter.config.get("rank_pattern"):
        return
    other = {name: pair.rank for name, pair in pairs_of(gguf).pairs.items() if pair.rank}
    wrong = [name for name, found in other.items() if found != rank]
    if wrong:
        yield Hit(
            message=f"the reference has rank {rank}, {wrong[0]} has {other[wrong[0]]}",
            where=Where(tensor=f"{wrong[0]}.lora_b"),
            expected=rank,
            actual=other[wrong[0]],
            level=Severity.ERROR,
            repair=Reconvert(),
        )


def _parameters(gguf: Gguf, adapter: PeftAdapter) -> Iterator[Outcome]:
    if isinstance(adapter.tensors, Absent):
        yield NoEvidence(adapter.tensors.reason)
        return
    pairs = pairs_of(gguf).pairs
    if any(name.endswith(TRANSPOSED) for name in pairs):
        yield NoEvidence("the converter takes this architecture's pairs apart: not counted")
        return
    ends = (".lora_B.weight", ".lora_embedding_B")
    wanted = {
        name: math.prod(stored.shape)
        for name, stored in adapter.tensors.items()
        if name.endswith(ends)
    }
    found = {name: pair.b.elements for name, pair in pairs.items() if pair.b is not None}
    if sum(found.values()) < sum(wanted.values()):
        embedding = [name for name in wanted if name.endswith("lora_embedding_B")]
        names = " of the embedding" if embedding and EMBEDDING not in found else ""
        yield Hit(
            message=(
                f"the reference has {sum(wanted.values())} parameters in {len(wanted)} lora_B,"
                f" the file {sum(found.values())} in {len(found)}: pairs{names} are lost"
            ),
            where=Where(),
            expected=sum(wanted.values()),
            actual=sum(found.values()),
            unit="parameter",
            level=Severity.ERROR,
            repair=Reconvert(),
        )


RULE = Rule(
    id="PKG044",
    name="adapter-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("adapter",)),
    needs=frozenset({Need.REFERENCE}),
    authority="peft tuners/lora/config.py, llama.cpp b11434 convert_lora_to_gguf.py",
)

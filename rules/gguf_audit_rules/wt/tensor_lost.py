"""A tensor of the checkpoint has no counterpart in the file.

## What it does
Names the tensor that each tensor of the checkpoint becomes, as the official converter does
(experts are stacked, fused projections split, towers and buffers left out), and looks for
it. What llama.cpp doesn't load without is tensor-missing's, what it computes from the
config (RoPE factors) rope-tensors-changed's. Blocks of multi-token prediction may be left
out, an output projection too where it is tied.

## Why it matters
llama.cpp takes biases, query and key norms, scales and the output projection as optional:
without them the file loads and answers, a little or a lot worse, and nothing is printed.
Without its output projection an untied model uses the embedding for it and writes nonsense.

## Fix
Reconvert: no metadata tool can add a tensor.

## Authority
llama.cpp b11434, `conversion/*.py: modify_tensors`, `gguf-py/gguf/tensor_mapping.py`;
`TENSOR_NOT_REQUIRED` in `src/models/*.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gguf_audit.arch import tensors as made
from gguf_audit.evidence import Conversion, Model, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, NoEvidence, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import NAMED, compared, going_by, listed, places

if TYPE_CHECKING:
    from gguf_audit.arch.tensors import Group

OUTPUT = "output.weight"
NO_OUTPUT = (
    "llama.cpp takes the token embedding for the output projection: the model writes nonsense"
)
#: Key of ``config.json`` that says so of a checkpoint.
TIE = "tie_word_embeddings"
#: Their converter drops a checkpoint's output projection whatever it holds: it is tied in
#: every model there is.
ALWAYS_TIED = frozenset({"gemma", "gemma2"})
#: Here it does if the values are the embedding's, whatever the config says (``MambaModel``).
TIED_BY_VALUE = frozenset({"mamba"})


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all that is lost and isn't told already."""
    del settings
    found = compared(conversion)
    if isinstance(found, Absent):
        if found.reason:
            yield NoEvidence(found.reason)
        return
    expected, comparison = found
    if expected.unknown:
        number = len(expected.unknown)
        yield NoEvidence(
            f"what becomes of {number} tensors isn't known: {listed(expected.unknown)}"
        )
    file = conversion.model.gguf.tensors
    told = _told(conversion)
    lost = [
        (name, group)
        for group in comparison.lost
        for name in group.names
        if name not in file and name not in told and not _tied(conversion, name)
    ]
    if lost:
        names = [name for name, _ in lost]
        parts = (part for part in told if not set(names).isdisjoint(made.stand_ins(part)))
        yield _hit(conversion.model, names, lost[0][1], parts=tuple(parts))


def _told(conversion: Conversion) -> frozenset[str]:
    """Return what llama.cpp misses, tensor-missing tells it."""
    inventory = places(conversion.model)
    if isinstance(inventory, Absent):
        return frozenset()
    return frozenset(slot.name for slot in inventory.missing(conversion.model.gguf.tensors))


def _tied(conversion: Conversion, name: str) -> bool:
    """Tell whether the embedding stands for a tensor, in the checkpoint as in the file."""
    if name != OUTPUT:
        return False
    architecture = conversion.model.gguf.architecture
    config = conversion.checkpoint.config
    if architecture in ALWAYS_TIED or isinstance(config, Absent):
        return architecture in ALWAYS_TIED
    part = config.get("text_config")
    stated = part.get(TIE) if isinstance(part, dict) else None
    stated = config.get(TIE) if stated is None else stated
    return stated is True or (stated is None and architecture in TIED_BY_VALUE)


def _hit(model: Model, names: list[str], first: Group, *, parts: tuple[str, ...]) -> Hit:
    return Hit(
        message=f"needs {listed(names)} ({first.source} in the checkpoint), absent from the "
        "file: llama.cpp may load it and say nothing",
        where=Where(tensor=names[0], layer=first.layer),
        expected=names,
        actual=[],
        level=Severity.ERROR,
        repair=Reconvert(),
        consequences=(NO_OUTPUT,) if OUTPUT in names else (),
        also=(*going_by(model, names), *_block_keys(model, names), *sorted(parts)[:NAMED]),
    )


def _block_keys(model: Model, names: list[str]) -> Iterator[str]:
    """Yield the numbers of blocks, where some of them are lost altogether."""
    there = {name[: name.index(".", 4)] for name in model.gguf.tensors if name.startswith("blk.")}
    blocks = {name[: name.index(".", 4)] for name in names if name.startswith("blk.")}
    if blocks - there:
        yield from map(model.fields.key, ("block_count", "nextn_predict_layers"))


RULE = Rule(
    id="WT004",
    name="tensor-lost",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    defers_to=("ARCH002", "ARCH003", "ARCH008", "WT001"),
    authority="llama.cpp b11434 conversion/*.py modify_tensors, gguf-py/gguf/tensor_mapping.py",
)

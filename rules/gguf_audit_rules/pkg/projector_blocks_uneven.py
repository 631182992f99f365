"""The blocks of an encoder don't have the same tensors, or there are more than it says.

## What it does
Compares the tensors of an encoder's blocks with each other, where the type's blocks are all
alike, and their number with `block_count`. So it does with the layers of a Qwen3-VL that feed
the text model (`v.deepstack`).

## Why it matters
llama.cpp does without nearly every tensor of a block, and without the blocks beyond
`block_count`: a file that lost a bias, a norm or its upper half loads, and sees something
else. Of a deepstack layer it looks for `fc1` alone; what is missing behind that makes the width
of an image another one, and llama.cpp aborts.

## Fix
Convert again.

## Authority
llama.cpp b11434, `tools/mtmd/clip.cpp: load_tensors`: of the ordinary blocks only
`attn_out`, `ffn_up` and `ffn_down` are asked for. Blocks beyond `block_count` in a right
file: `conversion/lfm2.py`, and the scripts of tools/mtmd/legacy-models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.limits import LIMITS
from gguf_audit.rule import Hit, NoEvidence, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.clip import Encoding, blocks_of, encodings, required
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import listed

#: Types of which right files have blocks that aren't used.
LONGER = frozenset({"lfm2", "mlp", "ldp", "ldpv2", "resampler", "adapter"})
FED = re.compile(r"v\.deepstack\.[0-9]{1,6}\.")
PARTS = tuple(f"{name}.{part}" for name in ("norm", "fc1", "fc2") for part in ("weight", "bias"))


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for uneven blocks, one for too many."""
    del settings
    for encoding in encodings(companion.gguf):
        projector = encoding.projector
        if projector is not None and projector.ordinary and projector.even:
            yield from _uneven(companion.gguf, encoding)
            yield from _beyond(companion.gguf, encoding)
        if encoding.type == "qwen3vl_merger":
            yield from _fed(companion.gguf)


def _uneven(gguf: Gguf, encoding: Encoding) -> Iterator[Outcome]:
    blocks = blocks_of(gguf, encoding.prefix)
    every = sorted(frozenset[str]().union(*blocks.values()))
    if len(blocks) * len(every) > LIMITS.tensors:
        many = f"{len(blocks)} blocks with {len(every)} different tensors"
        yield NoEvidence(f"{many} are not compared", kind="limit")
        return
    told = frozenset(required(gguf, encoding))
    lost = [
        f"{encoding.prefix}.blk.{index}.{name}"
        for index, names in blocks.items()
        for name in every
        if name not in names
    ]
    lost = [name for name in lost if name not in told]
    if not lost:
        return
    known = encoding.projector is not None and encoding.projector.plain
    yield Hit(
        message=f"every block of {encoding.type} has the same tensors, {listed(lost)} not in the file",
        where=Where(tensor=lost[0]),
        expected=lost,
        actual=[],
        level=Severity.ERROR if known else Severity.WARNING,
        repair=Reconvert(),
        also=(f"{encoding.prefix}.blk",),
    )


def _fed(gguf: Gguf) -> Iterator[Outcome]:
    """Yield a hit where a layer that feeds the text model has lost a part of itself."""
    layers = dict.fromkeys(match[0] for name in gguf.tensors if (match := FED.match(name)))
    lost = [layer + part for layer in layers for part in PARTS if layer + part not in gguf.tensors]
    if lost:
        yield Hit(
            message=f"every v.deepstack layer has six tensors, {listed(lost)} not in the file",
            where=Where(tensor=lost[0]),
            expected=lost,
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("v.deepstack",),
        )


def _beyond(gguf: Gguf, encoding: Encoding) -> Iterator[Outcome]:
    key = encoding.named("block_count")
    count, blocks = gguf.integer(key), blocks_of(gguf, encoding.prefix)
    if count is None or not blocks or encoding.type in LONGER:
        return
    there = max(blocks) + 1
    if there > count:
        yield Hit(
            message=f"needs {there} for as many blocks, {key} is {count}: the upper ones aren't used",
            where=Where(key=key, offset=gguf.fields[key].offset),
            expected=there,
            actual=count,
            level=Severity.WARNING,
            repair=Reconvert(),
        )


RULE = Rule(
    id="PKG037",
    name="projector-blocks-uneven",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("mmproj",)),
    defers_to=("PKG033", "PKG038", "PKG039"),
    authority="llama.cpp b11434 tools/mtmd/clip.cpp load_tensors, conversion/lfm2.py",
)

"""A projector file has less of its checkpoint's encoder than a right conversion.

## What it does
Counts the parameters of each block of the encoder in the reference's safetensors and in the
file: splitting, fusing and reshaping keep their number. Looks as well for what stands before
and after the blocks: norms, class and position embeddings, the bias of the patches.

## Why it matters
llama.cpp does without nearly every tensor of an encoder. A norm or all biases can be missing,
the file loads, and the model sees something else.

## Fix
Convert the projector again.

## Authority
llama.cpp b11434, `gguf-py/gguf/tensor_mapping.py`, `tools/mtmd/clip.cpp: load_tensors`; the
tensors of thirteen checkpoints and of the files that were made of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from gguf_audit.checkpoint import StoredTensor
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
from gguf_audit.runtime.clip import Encoding, blocks_of, encodings, required
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import listed

#: Types whose files were compared with their checkpoints.
COUNTED = frozenset(
    {
        *("gemma3", "qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger", "pixtral"),
        *("idefics3", "internvl", "lfm2", "mlp", "qwen2a", "voxtral"),
    }
)
TOWERS = {
    "vision": r"(?:vision_tower|vision_model|visual)",
    "audio": r"(?:audio_tower|audio_encoder)",
}
BLOCK = r"(?:.+\.)?{tower}\.(?:.+\.)?(?:layers|blocks)\.([0-9]{{1,6}})\..+"
#: End of a name in the checkpoint -> name in the file.
ONCE = {
    "vision": {
        "vision_model.post_layernorm.weight": "v.post_ln.weight",
        "vision_model.post_layernorm.bias": "v.post_ln.bias",
        "vision_model.pre_layrnorm.weight": "v.pre_ln.weight",
        "vision_model.pre_layrnorm.bias": "v.pre_ln.bias",
        "vision_tower.ln_pre.weight": "v.pre_ln.weight",
        "embeddings.class_embedding": "v.class_embd",
        "embeddings.position_embedding.weight": "v.position_embd.weight",
        "embeddings.patch_embedding.bias": "v.patch_embd.bias",
        "visual.pos_embed.weight": "v.position_embd.weight",
        "visual.patch_embed.proj.bias": "v.patch_embd.bias",
        "visual.merger.norm.weight": "v.post_ln.weight",
        "visual.merger.norm.bias": "v.post_ln.bias",
        "visual.merger.ln_q.weight": "v.post_ln.weight",
        "visual.merger.ln_q.bias": "v.post_ln.bias",
    },
    "audio": {
        "audio_tower.layer_norm.weight": "a.post_ln.weight",
        "audio_tower.layer_norm.bias": "a.post_ln.bias",
        "audio_tower.embed_positions.weight": "a.position_embd.weight",
    },
}
#: What scripts of old leave out, the feature layer being another than the last.
UNUSED = frozenset({"v.post_ln.weight", "v.post_ln.bias"})


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for blocks with fewer parameters, one for what stands around them."""
    del settings
    if isinstance(companion.checkpoint, Absent) or not companion.gguf.tensors:
        return
    if companion.checkpoint.gguf is not None:
        yield NoEvidence("another GGUF doesn't hold the encoder")
        return
    stored = companion.checkpoint.tensors
    if isinstance(stored, Absent):
        yield NoEvidence(stored.reason)
        return
    for encoding in encodings(companion.gguf):
        if encoding.type in COUNTED and encoding.encoder in TOWERS:
            yield from _blocks(companion.gguf, encoding, stored)
            yield from _around(companion.gguf, encoding, stored)
        elif encoding.projector is not None:
            yield NoEvidence(f"what becomes of an encoder with {encoding.type!r} isn't known here")


def _blocks(
    gguf: Gguf, encoding: Encoding, stored: Mapping[str, StoredTensor]
) -> Iterator[Outcome]:
    pattern = re.compile(BLOCK.format(tower=TOWERS[encoding.encoder]))
    wanted: dict[int, int] = {}
    for name, tensor in stored.items():
        found = pattern.fullmatch(name)
        if found is not None and "language_model" not in name:
            if tensor.dtype.startswith(("U", "I")):
                yield NoEvidence("the reference's encoder is quantized: not counted")
                return
            wanted[int(found[1])] = wanted.get(int(found[1]), 0) + math.prod(tensor.shape)
    count = gguf.integer(encoding.named("block_count")) or 0
    has = {
        block: sum(gguf.tensors[f"{encoding.prefix}.blk.{block}.{name}"].elements for name in names)
        for block, names in blocks_of(gguf, encoding.prefix).items()
    }
    fewer = [
        block
        for block, parameters in wanted.items()
        if block < count and has.get(block, 0) < parameters
    ]
    if fewer:
        first = min(fewer)
        yield Hit(
            message=(
                f"the reference's encoder has more parameters in {len(fewer)} of its"
                f" {len(wanted)} blocks, first in {encoding.prefix}.blk.{first}"
            ),
            where=Where(layer=first),
            expected=wanted[first],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=(f"{encoding.prefix}.blk",),
        )


def _around(
    gguf: Gguf, encoding: Encoding, stored: Mapping[str, StoredTensor]
) -> Iterator[Outcome]:
    wanted = dict.fromkeys(
        made
        for ending, made in ONCE[encoding.encoder].items()
        if any(name == ending or name.endswith(f".{ending}") for name in stored)
    )
    told = frozenset(required(gguf, encoding))
    lost = [name for name in wanted if name not in gguf.tensors and name not in told]
    if encoding.type == "mlp":
        lost = [name for name in lost if name not in UNUSED]
    if lost:
        yield Hit(
            message=f"the reference's encoder has {listed(lost)}, absent from the file",
            where=Where(tensor=lost[0]),
            expected=lost,
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=(f"{encoding.prefix}.around",),
        )


RULE = Rule(
    id="PKG039",
    name="projector-tensor-lost",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("mmproj",)),
    needs=frozenset({Need.REFERENCE}),
    defers_to=("PKG033",),
    authority="llama.cpp b11434 gguf-py/gguf/tensor_mapping.py, tools/mtmd/clip.cpp load_tensors",
)

"""A projector file has less of its checkpoint's encoder than a right conversion.

## What it does
Counts the parameters of each block of the encoder in the reference's safetensors and in the
file: splitting, fusing and reshaping keep their number. Looks as well for what stands before
and after the blocks: norms, class and position embeddings, the bias of the patches, and what
the projector of some types may have or not. Where the reference has an encoder of images and
one of sounds and the file only one, that is an info, unless a projector file in the same folder
of this machine has the other.

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

from gguf_audit.checkpoint import Json, StoredTensor
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
from gguf_audit.runtime.projectors import PROJECTORS, Encoder
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
        "embeddings.position_embedding": "v.position_embd.weight",
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
#: Of the projector what its graph does without, by its type.
_LINEAR = {
    "multi_modal_projector.linear_1.bias": "mm.1.bias",
    "multi_modal_projector.linear_2.bias": "mm.2.bias",
}
PROJECTED: Mapping[str | None, Mapping[str, str]] = {
    "mlp": {**_LINEAR, "multi_modal_projector.linear_1.bias": "mm.0.bias"},
    "pixtral": {
        **_LINEAR,
        "multi_modal_projector.norm.weight": "mm.input_norm.weight",
        "multi_modal_projector.patch_merger.merging_layer.weight": "mm.patch_merger.weight",
    },
    "lfm2": {
        "multi_modal_projector.layer_norm.weight": "mm.input_norm.weight",
        "multi_modal_projector.layer_norm.bias": "mm.input_norm.bias",
    },
}
#: Encoder -> where its part of a config.json is, and what it takes in.
WHOLE: tuple[tuple[Encoder, str, str], ...] = (
    ("vision", "vision_config", "images"),
    ("audio", "audio_config", "sounds"),
)
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
    types = _types(companion.checkpoint.config)
    yield from _whole(companion, companion.checkpoint.config, types, stored)
    if isinstance(stored, Absent):
        yield NoEvidence(stored.reason)
        return
    for encoding in encodings(companion.gguf):
        if types and encoding.type not in types:
            continue  # projector-changed says that it is of another type
        if encoding.type in COUNTED and encoding.encoder in TOWERS:
            yield from _blocks(companion.gguf, encoding, stored)
            yield from _around(companion.gguf, encoding, stored)
        elif encoding.projector is not None:
            yield NoEvidence(f"what becomes of an encoder with {encoding.type!r} isn't known here")


def _types(config: Mapping[str, Json] | Absent) -> tuple[str, ...]:
    # Only who compares a projector pays for what it is compared with.
    from gguf_audit.projection import projector_types

    return () if isinstance(config, Absent) else projector_types(config)


def _whole(
    companion: Companion,
    config: Mapping[str, Json] | Absent,
    types: tuple[str, ...],
    stored: Mapping[str, StoredTensor] | Absent,
) -> Iterator[Outcome]:
    """Yield a hit for an encoder that the converter would have put into the same file."""
    has = {encoding.encoder for encoding in encodings(companion.gguf)}
    if isinstance(config, Absent) or not has:
        return
    from gguf_audit.projection import vision_part

    made = {PROJECTORS[name].encoder for name in types if name in PROJECTORS}
    for encoder, part, taken in WHOLE:
        if encoder in has or encoder not in made or not vision_part(config).get(part):
            continue
        tower = re.compile(rf"(?:.+\.)?{TOWERS[encoder]}\..+")
        kept = isinstance(stored, Absent) or any(map(tower.fullmatch, stored))
        if kept and encoder not in companion.load_beside():
            key = f"clip.has_{encoder}_encoder"
            yield Hit(
                message=f"the reference has an encoder of {taken} too, this file has none: without "
                f"another file that has it the model takes no {taken}",
                where=Where(key=key),
                expected=encoder,
                actual=sorted(has),
                level=Severity.INFO,
                repair=Reconvert(),
            )


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
    endings = {**ONCE[encoding.encoder], **PROJECTED.get(encoding.type, {})}
    wanted = dict.fromkeys(
        made
        for ending, made in endings.items()
        if any(name == ending or name.endswith(f".{ending}") for name in stored)
    )
    told = frozenset(required(gguf, encoding))
    lost = [name for name in wanted if name not in gguf.tensors and name not in told]
    if encoding.type == "mlp":
        lost = [name for name in lost if name not in UNUSED]
    if lost:
        yield Hit(
            message=f"the reference has what becomes {listed(lost)}, absent from the file",
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
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnCompanion(check, kinds=("mmproj",)),
    needs=frozenset({Need.REFERENCE}),
    defers_to=("PKG033",),
    authority="llama.cpp b11434 gguf-py/gguf/tensor_mapping.py, tools/mtmd/clip.cpp load_tensors",
)

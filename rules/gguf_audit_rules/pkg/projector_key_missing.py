"""A projector file lacks a value that llama.cpp can't do without, or has a useless one.

## What it does
Looks for every key that the loader reads without a default: sizes of each encoder, mean and
deviation of an image's colours, and what the projector's type asks for besides. Their types
have to be right, mean and deviation three finite numbers, the deviation above 0, and not
both activations may be asked for. Where Pixtral's projector merges patches, `spatial_merge_size`
has to be what its merger was made for; absent it counts as 1.

## Why it matters
llama.cpp stops at a missing key, and aborts where patches don't fit their merger. A deviation
of 0 it takes, and then divides by it.

## Fix
Convert again: the checkpoint has these values.

## Authority
llama.cpp b11434, `tools/mtmd/clip.cpp: load_hparams`, each key taken out of a file that
loads; `tools/mtmd/models/pixtral.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.gguf import Array, Gguf, ValueType
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.clip import Encoding, encodings, merged_width
from gguf_audit.runtime.projectors import COMMON, COMMON_AUDIO, COMMON_VISION
from gguf_audit.where import Where
from gguf_audit_rules._fields import type_name

FLOATS = frozenset({"attention.layer_norm_epsilon", "swiglu_clamp"})
COLOURS = ("image_mean", "image_std")
MERGE = "spatial_merge_size"
U31 = 1 << 31


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key that is missing or can't be used."""
    del settings
    gguf = companion.gguf
    for encoding in encodings(gguf):
        if encoding.projector is not None:
            for name in _demanded(encoding):
                yield from _value(gguf, encoding.named(name), name, encoding)
            if encoding.encoder == "vision":
                for name in COLOURS:
                    yield from _colours(gguf, encoding.named(name), name)
            yield from _merge(gguf, encoding)
    both = [key for key in ("clip.use_gelu", "clip.use_silu") if _true(gguf, key)]
    if len(both) > 1:
        yield _hit(gguf, both[1], "one activation", f"is true and so is {both[0]}")


def _demanded(encoding: Encoding) -> Iterator[str]:
    yield from COMMON
    match encoding.encoder:
        case "vision":
            yield from COMMON_VISION
        case "audio":
            yield from COMMON_AUDIO
        case "gen.audio":
            pass
    if encoding.projector is not None:
        yield from (key for key in encoding.projector.keys if key not in COMMON)


def _true(gguf: Gguf, key: str) -> bool:
    field = gguf.fields.get(key)
    return field is not None and field.value is True


def _value(gguf: Gguf, key: str, name: str, encoding: Encoding) -> Iterator[Outcome]:
    field = gguf.fields.get(key)
    arrays = encoding.projector.arrays if encoding.projector is not None else ()
    wanted = "an array of i32" if name in arrays else "an f32" if name in FLOATS else "a u32"
    if field is None:
        yield _hit(gguf, key, wanted, "is absent and has no default")
    elif name in arrays:
        if not isinstance(field.value, Array) or field.value.item_type is not ValueType.INT32:
            yield _hit(gguf, key, wanted, f"is {type_name(field)}")
    elif name in FLOATS:
        if field.type is not ValueType.FLOAT32:
            yield _hit(gguf, key, wanted, f"is {type_name(field)}")
    elif field.type is not ValueType.UINT32 or not isinstance(field.value, int):
        yield _hit(gguf, key, wanted, f"is {type_name(field)}")
    elif field.value >= U31:
        yield _hit(gguf, key, "at most 2147483647", f"is {field.value}")
    elif name in ("patch_size", "embedding_length", "num_mel_bins") and not field.value:
        yield _hit(gguf, key, "at least 1", "is 0")


def _colours(gguf: Gguf, key: str, name: str) -> Iterator[Outcome]:
    field = gguf.fields.get(key)
    array = None if field is None else field.value
    if not isinstance(array, Array) or array.item_type is not ValueType.FLOAT32:
        how = "is absent and has no default" if field is None else f"is {type_name(field)}"
        yield _hit(gguf, key, "an array of three f32", how)
        return
    if array.count < 3:
        yield _hit(gguf, key, "an array of three f32", f"has {array.count}")
        return
    numbers = [float(item) for item in array.items()[:3] if isinstance(item, int | float)]
    if not all(map(math.isfinite, numbers)):
        yield _hit(gguf, key, "three finite numbers", f"is {numbers}")
    elif name == "image_std" and min(numbers) <= 0:
        yield _hit(
            gguf, key, "three numbers above 0", f"is {numbers}: every colour is divided by it"
        )


def _merge(gguf: Gguf, encoding: Encoding) -> Iterator[Outcome]:
    """Yield a hit where patches are merged by another number than their merger takes."""
    key, merged = encoding.named(MERGE), merged_width(gguf, encoding)
    width = gguf.integer(encoding.named("embedding_length"))
    each = 1 if key not in gguf.fields else gguf.integer(key)
    if merged is None or not width or each is None or merged == width * each**2:
        return
    side = math.isqrt(merged // width)
    wanted = f"{side}" if merged == width * side**2 else f"what mm.patch_merger merges, {merged}"
    how = f"is {each}" if key in gguf.fields else "is absent and llama.cpp takes 1"
    yield _hit(gguf, key, wanted, f"{how}: it aborts where it merges patches")


def _hit(gguf: Gguf, key: str, wanted: str, how: str) -> Hit:
    field = gguf.fields.get(key)
    return Hit(
        message=f"needs {wanted}, {key} {how}",
        where=Where(key=key, offset=None if field is None else field.offset),
        expected=wanted,
        actual=None if field is None else field.value,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="PKG032",
    name="projector-key-missing",
    levels=(Severity.ERROR,),
    check=OnCompanion(check, kinds=("mmproj",)),
    defers_to=("PKG038",),
    authority="llama.cpp b11434 tools/mtmd/clip.cpp load_hparams, models/pixtral.cpp",
)

"""A projector file says something else than its checkpoint.

## What it does
Compares each encoder's sizes, activation, epsilon and merging with what the converter writes
for the reference's `vision_config` and `audio_config`, and the mean and the deviation of
colours with `preprocessor_config.json` (`processor_config.json` has precedence). Values that
the converter makes up, as the image size of Qwen2-VL, are compared with that. An absent key
counts as what llama.cpp takes then. What no key holds is an info: the base of the rotation in
Pixtral and the number of frames in Qwen-VL are built into llama.cpp.

## Why it matters
Hardly anything of this stops llama.cpp: only where other blocks feed the text model, the two
don't fit together. Else colours are shifted by another mean or scaled by another deviation, heads
are cut in other places, another activation is computed, and all that is seen is that the model
sees badly.

## Fix
Convert the projector again; the text model is not concerned. Where only a value is wrong, it
can be set.

## Authority
llama.cpp b11434, `conversion/base.py: MmprojModel.set_gguf_parameters` and the classes that
derive from it; `tools/mtmd/clip.cpp: load_hparams`; ggml-org/llama.cpp issue 13208.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gguf_audit.evidence import Companion, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Array, Gguf, Scalar
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnCompanion,
    Outcome,
    Reconvert,
    Repair,
    Replace,
    Rule,
    SetArray,
    SetKey,
    Severity,
)
from gguf_audit.runtime.clip import Encoding, encodings
from gguf_audit.where import Where

if TYPE_CHECKING:
    from gguf_audit.projection import Wanted

Value = Scalar | tuple[Scalar, ...]
#: Relative difference of two f32 that were written and read as decimal fractions.
CLOSE = 1e-5
#: ``gguf_audit.projection.ACTIVATION``: stands for the keys ``clip.use_gelu`` and its like.
ACTIVATION = "activation"
FED = re.compile(r"v\.deepstack\.([0-9]{1,6})\.")


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for another type of projector, else one for each value."""
    del settings
    checkpoint = companion.checkpoint
    if isinstance(checkpoint, Absent):
        return
    if isinstance(checkpoint.config, Absent):
        if checkpoint.gguf is None:
            yield NoEvidence(checkpoint.config.reason)
        else:
            yield NoEvidence("another GGUF doesn't say how images and sounds are encoded")
        return
    # Only who compares a projector pays for what it is compared with.
    from gguf_audit.projection import expected_projector, projector_types

    types = projector_types(checkpoint.config)
    preprocessor = checkpoint.preprocessor
    for encoding in encodings(companion.gguf):
        if encoding.type is None or encoding.projector is None or encoding.encoder == "gen.audio":
            continue
        if types and encoding.type not in types:
            yield _other_type(encoding, types)
            continue
        wanted = expected_projector(
            checkpoint.config, preprocessor, encoding.type, encoding.encoder
        )
        yield from _compared(companion.gguf, encoding, wanted)
        yield from _fed(companion.gguf, encoding, wanted)
        yield from _built_in(encoding, wanted)
        if wanted.unknown:
            yield NoEvidence(wanted.unknown)


def _other_type(encoding: Encoding, types: tuple[str, ...]) -> Hit:
    return Hit(
        message=f"the reference has projector {' or '.join(types)}, the file {encoding.type}",
        where=Where(key=encoding.key),
        expected=types[0],
        actual=encoding.type,
        level=Severity.ERROR,
        repair=Replace(),
    )


def _compared(gguf: Gguf, encoding: Encoding, wanted: Wanted) -> Iterator[Outcome]:
    for name, values in wanted.values.items():
        key, actual, origin = _stated(gguf, encoding, name, wanted)
        if actual is None or any(_same(value, actual) for value in values):
            # What has no default and is absent is told by another rule.
            continue
        yield Hit(
            message=f"the reference needs {_shown(values[0])}, {key} {_how(actual, origin)}",
            where=Where(key=key, offset=gguf.fields[key].offset if key in gguf.fields else None),
            expected=values[0],
            actual=actual,
            origin=origin,
            level=Severity.ERROR,
            repair=_repair(gguf, key, name, values[0]),
        )


def _fed(gguf: Gguf, encoding: Encoding, wanted: Wanted) -> Iterator[Outcome]:
    """Yield a hit where other blocks than the reference's feed layers of the text model."""
    if encoding.type != "qwen3vl_merger" or wanted.fed is None or not gguf.tensors:
        return
    found = sorted({int(match[1]) for name in gguf.tensors if (match := FED.match(name))})
    if found != sorted(wanted.fed):
        yield Hit(
            message=f"the reference feeds layers from blocks {list(wanted.fed)}, the file {found}",
            where=Where(tensor="v.deepstack"),
            expected=list(wanted.fed),
            actual=found,
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("v.deepstack",),
        )


def _built_in(encoding: Encoding, wanted: Wanted) -> Iterator[Outcome]:
    """Yield an info for each number of the reference's that llama.cpp has one of its own for."""
    for name, (said, taken) in wanted.built_in.items():
        yield Hit(
            message=f"the reference needs {name} {said:g}, llama.cpp takes {taken:g} for"
            f" {encoding.type} whatever the file says",
            where=Where(),
            expected=said,
            actual=taken,
            level=Severity.INFO,
        )


def _stated(
    gguf: Gguf, encoding: Encoding, name: str, wanted: Wanted
) -> tuple[str, Value | None, Origin]:
    """Return the key, what llama.cpp takes for its value, and where that comes from."""
    if name == ACTIVATION:
        return _activation(gguf)
    key = encoding.named(name)
    return key, *_actual(gguf, key, wanted.defaults.get(name))


def _activation(gguf: Gguf) -> tuple[str, str, Origin]:
    for name in ("gelu", "silu"):
        field = gguf.fields.get(f"clip.use_{name}")
        if field is not None and field.value is True:
            return field.key, name, Origin.KEY
    return "clip.use_gelu", "quick_gelu", Origin.RUNTIME_DEFAULT


def _actual(gguf: Gguf, key: str, default: Scalar | None) -> tuple[Value | None, Origin]:
    field = gguf.fields.get(key)
    if field is None:
        return default, Origin.RUNTIME_DEFAULT
    if isinstance(field.value, Array):
        return tuple(field.value.items()), Origin.KEY
    return field.value, Origin.KEY


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, tuple) or isinstance(other, tuple):
        if not (isinstance(one, tuple) and isinstance(other, tuple)):
            return False
        # three are used, however many there are
        return all(_same(a, b) for a, b in zip(one[:3], other[:3], strict=False))
    if isinstance(one, float) or isinstance(other, float):
        if isinstance(one, str) or isinstance(other, str):
            return False
        return abs(one - other) <= CLOSE * max(abs(one), abs(other))
    return one == other


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_shown(item) for item in value[:3])}]"
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _how(actual: Value, origin: Origin) -> str:
    if origin is Origin.KEY:
        return f"is {_shown(actual)}"
    return f"is absent and llama.cpp takes {_shown(actual)}"


def _repair(gguf: Gguf, key: str, name: str, value: Value) -> Repair:
    if name == ACTIVATION:
        return Reconvert()
    if isinstance(value, tuple):
        items = (_f32(item) if isinstance(item, float) else item for item in value)
        return SetArray(key=key, items=tuple(items))
    if key not in gguf.fields or isinstance(value, str):
        return Reconvert()
    return SetKey(key=key, value=value, present=True)


def _f32(value: float) -> float:
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


RULE = Rule(
    id="PKG038",
    name="projector-changed",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnCompanion(check, kinds=("mmproj",)),
    needs=frozenset({Need.REFERENCE}),
    authority="llama.cpp b11434 conversion/base.py MmprojModel.set_gguf_parameters, "
    "tools/mtmd/clip.cpp load_hparams, ggml-org/llama.cpp issue 13208",
)

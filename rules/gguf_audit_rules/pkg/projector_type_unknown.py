"""A projector file names no encoder, or a projector that llama.cpp doesn't know.

## What it does
Reads which encoders the file says it has (`clip.has_vision_encoder` and its like) and the
type of each one's projector: `clip.projector_type`, else `clip.vision.projector_type` and
`clip.audio.projector_type`.

## Why it matters
llama.cpp takes absent flags for false and then has nothing to load; a type that it doesn't
know, or that isn't there, is an error.

## Fix
Convert again with the converter of the llama.cpp that is to run it. A type that is newer
than the build named here needs a newer llama.cpp.

## Authority
llama.cpp b11434, `tools/mtmd/clip-impl.h: PROJECTOR_TYPE_NAMES`, `tools/mtmd/clip.cpp:
clip_model_loader`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.clip import encodings
from gguf_audit.where import Where

FLAG = "clip.has_vision_encoder"


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for no encoder, else one for each type that isn't loaded."""
    del settings
    gguf = companion.gguf
    found = encodings(gguf)
    if not found:
        yield Hit(
            message=(
                f"needs {FLAG}, clip.has_audio_encoder or clip.has_gen_audio_encoder, none is true:"
                " llama.cpp finds nothing to load"
            ),
            where=Where(key=FLAG),
            expected=True,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    for encoding in found:
        if encoding.projector is not None:
            continue
        has = "is absent" if encoding.type is None else f"is {encoding.type!r}"
        field = gguf.fields.get(encoding.key)
        yield Hit(
            message=f"needs a type of projector that llama.cpp b11434 loads, {encoding.key} {has}",
            where=Where(key=encoding.key, offset=None if field is None else field.offset),
            expected="a known type",
            actual=encoding.type,
            level=Severity.ERROR,
            repair=Reconvert(),
        )


RULE = Rule(
    id="PKG031",
    name="projector-type-unknown",
    levels=(Severity.ERROR,),
    check=OnCompanion(check, kinds=("mmproj",)),
    authority="llama.cpp b11434 tools/mtmd/clip-impl.h PROJECTOR_TYPE_NAMES, "
    "tools/mtmd/clip.cpp clip_model_loader",
)

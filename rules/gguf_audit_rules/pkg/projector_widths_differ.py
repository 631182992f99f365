"""The encoders of a projector file want text models of different widths.

## What it does
Reads the width of each encoder's output from the tensor that llama.cpp reads it from, and
compares vision with audio.

## Why it matters
Both feed the same text model. llama.cpp refuses a file whose two widths differ.

## Fix
Convert again, both encoders from one checkpoint.

## Authority
llama.cpp b11434, `tools/mtmd/mtmd.cpp: mtmd_context`, `tools/mtmd/clip.cpp:
clip_n_mmproj_embd`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.clip import encodings, width_of
from gguf_audit.where import Where


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit where vision and audio differ."""
    del settings
    found = {each.encoder: width_of(companion.gguf, each) for each in encodings(companion.gguf)}
    vision, audio = found.get("vision"), found.get("audio")
    if vision is not None and audio is not None and vision != audio:
        yield Hit(
            message=f"vision and audio need one width, vision has {vision} and audio {audio}",
            where=Where(key="clip.audio.projection_dim"),
            expected=vision,
            actual=audio,
            unit="number",
            level=Severity.ERROR,
            repair=Reconvert(),
        )


RULE = Rule(
    id="PKG034",
    name="projector-widths-differ",
    levels=(Severity.ERROR,),
    check=OnCompanion(check, kinds=("mmproj",)),
    authority="llama.cpp b11434 tools/mtmd/mtmd.cpp mtmd_context, "
    "tools/mtmd/clip.cpp clip_n_mmproj_embd",
)

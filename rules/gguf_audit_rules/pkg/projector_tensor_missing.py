"""A projector file lacks a tensor that llama.cpp doesn't load it without.

## What it does
Makes the list of tensors that the loader asks for: those of the projector's type, and those
of each block, as many as `block_count` says. Where files of the type were taken apart and
loaded, also those that the loader takes for granted and the graph then stumbles over.

## Why it matters
llama.cpp stops at the first of them: `unable to find tensor`. The official converter makes
such files of Pixtral and Mistral 3 checkpoints in the layout of transformers: the row of
`[IMG_BREAK]` never reaches the file.

## Fix
Convert again. For `v.token_embd.img_break` convert the checkpoint in Mistral's own format,
or with a converter that keeps that row of the embedding.

## Authority
llama.cpp b11434, `tools/mtmd/clip.cpp: load_tensors`; ggml-org/llama.cpp issue 22901.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.runtime.clip import Encoding, blocks_of, encodings, required
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import listed

IMG_BREAK = "v.token_embd.img_break"
HINT = "the converter drops the row of [IMG_BREAK]: convert the checkpoint in Mistral's own format"


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for what an encoder and its projector lack."""
    del settings
    gguf = companion.gguf
    if not gguf.tensors:
        return
    for encoding in encodings(gguf):
        missing = [name for name in required(gguf, encoding) if name not in gguf.tensors]
        if missing:
            yield Hit(
                message=(
                    f"{encoding.type} needs {listed(missing)}, absent from the file:"
                    " llama.cpp won't load it"
                ),
                where=Where(key=_key(gguf, encoding, missing), tensor=missing[0]),
                expected=missing,
                actual=[],
                level=Severity.ERROR,
                repair=Reconvert(hint=HINT if missing == [IMG_BREAK] else ""),
                also=(f"{encoding.prefix}.blk",),
            )


def _key(gguf: Gguf, encoding: Encoding, missing: list[str]) -> str | None:
    """Return the key that tells of more blocks than have tensors, where that is all."""
    there = blocks_of(gguf, encoding.prefix).keys()
    blocks = f"{encoding.prefix}.blk."
    beyond = all(
        name.startswith(blocks) and int(name.removeprefix(blocks).partition(".")[0]) not in there
        for name in missing
    )
    return encoding.named("block_count") if there and beyond else None


RULE = Rule(
    id="PKG033",
    name="projector-tensor-missing",
    levels=(Severity.ERROR,),
    check=OnCompanion(check, kinds=("mmproj",)),
    defers_to=("PKG038",),
    authority="llama.cpp b11434 tools/mtmd/clip.cpp load_tensors",
)

"""A model that sees or hears is in a folder without a projector.

## What it does
Looks, in a folder or a repository of which all files are known, for models with an encoder of
images or sounds that llama.cpp takes from a file of its own, the projector (mmproj): by the
architecture (`qwen2vl`, `qwen3vl`), by `general.tags`, or by the reference. One projector, whatever
it is called, is enough for all models of the folder, of those above and below it. Nothing is said
of a file that was named by itself, or of what huggingface_hub has downloaded: nobody knows what
stands beside it there. Nor of encoders that llama.cpp doesn't know.

## Why it matters
The model loads and answers, and refuses every image: its converter writes the encoder into a
second file, which is easily forgotten.

## Fix
Make the projector with `convert_hf_to_gguf.py --mmproj` and put it beside the model. Where the
model is meant for text alone, say so on the card and leave this rule out.

## Authority
llama.cpp b11434, `tools/mtmd/mtmd.cpp: mtmd_init_from_file`; `convert_hf_to_gguf.py --mmproj`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from gguf_audit.evidence import FolderSubject, Settings
from gguf_audit.rule import Hit, OnFolder, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where


def check(subject: FolderSubject, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all models of a folder that lack their encoder."""
    del settings
    models = [model for model in subject.models if model.encoder]
    if not models or subject.has_projector:
        return
    first, more = models[0], len(models) - 1
    name = os.path.basename(first.name)  # noqa: PTH119 - it may be an address
    others = f" and {more} more" if more else ""
    yield Hit(
        message=(
            f"needs a projector file (mmproj) in {subject.folder}, there is none: {name}{others} "
            f"can take text alone, though {first.encoder}"
        ),
        where=Where(file=first.name),
        expected="a projector file (mmproj)",
        level=Severity.INFO,
        repair=Reconvert(hint="convert_hf_to_gguf.py --mmproj writes the projector"),
    )


RULE = Rule(
    id="PKG014",
    name="projector-missing",
    levels=(Severity.INFO,),
    check=OnFolder(check),
    authority="llama.cpp b11434 tools/mtmd/mtmd.cpp mtmd_init_from_file, "
    "convert_hf_to_gguf.py --mmproj",
)

"""A JSON document inside the file nests deeper than readers can follow.

## What it does
Counts how deep the brackets of `tokenizer.huggingface.json` nest, where a file has it: a copy
of `tokenizer.json` for engines that read that instead of the token list. Real ones nest less
than twenty deep.

## Why it matters
A reader that follows brackets by recursion runs out of stack and ends its whole process, a
server with all its other requests among them.

## Fix
Don't load the file; `gguf-new-metadata --remove-metadata tokenizer.huggingface.json` writes a
copy without the document, which llama.cpp doesn't read.

## Authority
GGUF specification of ggml, docs/gguf.md, `tokenizer.huggingface.json`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.limits import LIMITS
from gguf_audit.nesting import depth_of
from gguf_audit.rule import Hit, OnModel, Outcome, RemoveKey, Rule, Severity
from gguf_audit.where import Where

KEY = "tokenizer.huggingface.json"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for a document that is too deep."""
    del settings
    field = model.gguf.fields.get(KEY)
    if field is None or not isinstance(field.value, str):
        return
    depth = depth_of(field.value.encode("utf-8", "surrogatepass"))
    if depth <= LIMITS.json_depth:
        return
    yield Hit(
        message=f"needs at most {LIMITS.json_depth} brackets in each other, {KEY} has {depth:,}",
        where=Where(key=KEY, offset=field.offset),
        expected=LIMITS.json_depth,
        actual=depth,
        unit="level",
        level=Severity.ERROR,
        repair=RemoveKey(key=KEY),
    )


RULE = Rule(
    id="GGUF007",
    name="embedded-json-deep",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    any_kind=True,
    authority="ggml docs/gguf.md tokenizer.huggingface.json",
)

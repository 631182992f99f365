"""A file that calls itself a reranker has nothing to rank with.

## What it does
Looks, in a file whose name or tags say that it is a reranker, for a classification head
(`cls`, `cls.output`). A Qwen3 reranker's head has to have the two rows that stand for yes and
no.

## Why it matters
llama.cpp ranks with the head. Without one `--reranking` gives numbers around 1e-20, or stops:
early conversions of rerankers that are language models have none.

## Fix
Convert again with a converter that writes the head. A reranker that is asked by prompt needs
none.

## Authority
llama.cpp b11434, `src/llama-graph.cpp: build_pooling`, `conversion/qwen.py: Qwen3Model`;
ggml-org/llama.cpp issues 25447, 13820, 20332.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

HEADS = ("cls.output.weight", "cls.weight")
NAMES = ("general.name", "general.basename", "general.finetune")
RERANKER = re.compile(r"(?:^|[^a-z])re-?rank(?:er|ing)?(?:$|[^a-z])", re.IGNORECASE)
#: Architectures whose reranker says yes or no.
ANSWERING = frozenset({"qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe"})


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for a head that is missing, or has other rows."""
    del settings
    gguf = model.gguf
    if not gguf.tensors:
        return
    head = next((gguf.tensors[name] for name in HEADS if name in gguf.tensors), None)
    key = _claim(gguf)
    if head is None and key is not None:
        yield Hit(
            message=f"a reranker needs {HEADS[0]}, absent from the file: llama.cpp can't rank with it",
            where=Where(key=key, tensor=HEADS[0]),
            expected=HEADS[0],
            level=Severity.WARNING,
            repair=Reconvert(),
        )
    rows = None if head is None else (*head.shape, 1)[1]
    if head is not None and key is not None and gguf.architecture in ANSWERING and rows != 2:
        yield Hit(
            message=f"a Qwen3 reranker needs two rows, yes and no, {head.name} has {rows}",
            where=Where(tensor=head.name),
            expected=2,
            actual=rows,
            unit="row",
            level=Severity.WARNING,
            repair=Reconvert(),
            also=(head.name,),
        )


def _claim(gguf: Gguf) -> str | None:
    """Return the key that says that the file is a reranker."""
    for key in NAMES:
        if RERANKER.search(gguf.string(key) or ""):
            return key
    tags = gguf.array("general.tags")
    if tags is not None and tags.count <= 256:
        found = (item for item in tags.items() if isinstance(item, str))
        if any(item in ("reranker", "text-ranking") for item in found):
            return "general.tags"
    return None


RULE = Rule(
    id="PKG048",
    name="classifier-head-missing",
    levels=(Severity.WARNING,),
    check=OnModel(check),
    defers_to=("WT003",),
    authority="llama.cpp b11434 src/llama-graph.cpp build_pooling, conversion/qwen.py Qwen3Model",
)

"""Something is missing that llama.cpp takes for optional and then dies without.

## What it does
Looks for the gaps that the loader lets pass: linear-attention layers of Qwen 3.5 without
their fused projection and gate, and BERT's token types without the key that says how many
there are.

## Why it matters
No message names what is missing: the process ends with a segmentation fault while the graph
is built, or complains of a shape that the file doesn't have.

## Fix
Reconvert with a current converter.

## Authority
llama.cpp b11434, `src/models/qwen35.cpp` and `qwen35moe.cpp` (`attn_qkv` and `attn_gate`
with `TENSOR_NOT_REQUIRED`), `src/models/bert.cpp` and its kin (`n_token_types`); measured
by leaving each out.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.layout import CacheLayout, Recurrent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

LINEAR = frozenset({"qwen35", "qwen35moe"})
#: Tensors of a layer with linear attention that the loader takes for optional.
PROJECTIONS = ("attn_qkv", "attn_gate")
TYPED = frozenset({"bert", "jina-bert-v2", "jina-bert-v3", "nomic-bert", "nomic-bert-moe"})
#: Asserts where the others say what is missing.
DIES = frozenset({"jina-bert-v2"})
TYPES = "token_types.weight"
COUNT = "tokenizer.ggml.token_type_count"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all layers that lack a projection, one for lost token types."""
    del settings
    if model.fields.architecture in LINEAR:
        yield from _projections(model)
    if model.fields.architecture in TYPED:
        yield from _types(model)


def _projections(model: Model) -> Iterator[Outcome]:
    if not isinstance(model.implied, CacheLayout) or not model.gguf.tensors:
        return
    linear = [index for index, store in model.implied.stores() if isinstance(store, Recurrent)]
    missing = [
        name
        for index in linear
        for name in (f"blk.{index}.{projection}.weight" for projection in PROJECTIONS)
        if name not in model.gguf.tensors
    ]
    if not missing:
        return
    shown = ", ".join(missing[:4]) + (", ..." if len(missing) > 4 else "")
    yield Hit(
        message=f"needs {' and '.join(PROJECTIONS)} in {len(linear)} layers with linear "
        f"attention, {len(missing)} absent ({shown}): llama.cpp loads the file and dies of it",
        where=Where(tensor=missing[0]),
        expected=2 * len(linear),
        actual=2 * len(linear) - len(missing),
        unit="tensor",
        level=Severity.ERROR,
        repair=Reconvert(),
        also=tuple(missing),
    )


def _types(model: Model) -> Iterator[Outcome]:
    if not model.gguf.tensors or model.gguf.integer(COUNT):
        return
    tensor = model.gguf.tensors.get(TYPES)
    rows = None if tensor is None or len(tensor.shape) != 2 else tensor.shape[1]
    verdict = "dies of it" if model.fields.architecture in DIES else "refuses the file"
    state = "is 0" if COUNT in model.gguf.fields else "is absent"
    yield Hit(
        message=f"needs the number of token types{'' if rows is None else f', {rows}'}, {COUNT} "
        f"{state}: llama.cpp {verdict}",
        where=Where(key=COUNT),
        expected=rows,
        actual=model.gguf.integer(COUNT),
        level=Severity.ERROR,
        repair=Reconvert(),
    )


RULE = Rule(
    id="ARCH008",
    name="graph-incomplete",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    authority="llama.cpp b11434 src/models/qwen35.cpp, bert.cpp TENSOR_NOT_REQUIRED",
)

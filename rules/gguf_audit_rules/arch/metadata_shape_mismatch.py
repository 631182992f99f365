"""The metadata says one thing, the shapes of the tensors another.

## What it does
Compares what llama.cpp computes from the metadata with the tensors that are in the file:
embedding length, number of blocks, and the rows of each block's query, key and value
projections. Defaults count: an absent `head_count_kv` means as many as query heads.

## Why it matters
llama.cpp refuses the file (`wrong shape`, `wrong number of tensors`), or loads it where the
difference happens to fit and computes something else.

## Fix
Trust the tensors: set the key if it is present, else reconvert.

## Authority
llama.cpp b11434, `src/llama-model-loader.cpp: check_tensor_dims, done_getting_tensors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.errors import Refused
from gguf_audit.evidence import Model, Settings
from gguf_audit.layout import CacheLayout, Chunked, Full, Sliding
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Repair, Rule, SetKey, Severity
from gguf_audit.subject import Absent, Origin, Tensor
from gguf_audit.where import Where

BLOCK = re.compile(r"blk\.([0-9]{1,9})\.")

#: Blocks may be unrolled: more of them run than are stored (hrm_text.cpp).
UNROLLED = frozenset({"hrm_text"})


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key that the tensors contradict."""
    del settings
    if isinstance(model.architecture, Absent) or not model.gguf.tensors:
        return
    yield from _embedding(model)
    yield from _blocks(model)
    yield from _projections(model)


def _embedding(model: Model) -> Iterator[Outcome]:
    tensor = model.gguf.tensors.get("token_embd.weight")
    key = "embedding_length"
    stated = _integer(model, key)
    if tensor is None or not tensor.shape or stated is None or tensor.shape[0] == stated:
        return
    yield Hit(
        message=(
            f"needs rows of {stated} elements as {model.fields.key(key)} says, "
            f"token_embd.weight has rows of {tensor.shape[0]}"
        ),
        where=Where(key=model.fields.key(key), tensor=tensor.name, offset=tensor.info_offset),
        expected=tensor.shape[0],
        actual=stated,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _blocks(model: Model) -> Iterator[Outcome]:
    key = "block_count"
    stated = _integer(model, key)
    found = [int(match[1]) for name in model.gguf.tensors if (match := BLOCK.match(name))]
    if stated is None or not found or model.fields.architecture in UNROLLED:
        return
    count = max(found) + 1
    if count == stated:
        return
    yield Hit(
        message=(
            f"needs tensors of {stated} blocks as {model.fields.key(key)} says, "
            f"the last one is blk.{count - 1}"
        ),
        where=Where(key=model.fields.key(key)),
        expected=count,
        actual=stated,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _projections(model: Model) -> Iterator[Outcome]:
    """Yield one hit for each projection, on the first block where it doesn't fit."""
    if not isinstance(model.implied, CacheLayout):
        return
    told: set[str] = set()
    heads = _heads(model)
    for index, store in model.implied.stores():
        if not isinstance(store, Full | Sliding | Chunked):
            continue
        rows: dict[str, tuple[int, ...]] = {
            "attn_k": (store.kv_heads * store.key_length,),
            "attn_v": (store.kv_heads * store.value_length,),
        }
        if heads is not None and index < len(heads):
            wide = heads[index] * store.key_length
            # Some architectures store the query's gate behind the query itself.
            rows["attn_q"] = (wide, 2 * wide)
        for name, wanted in rows.items():
            tensor = model.gguf.tensors.get(f"blk.{index}.{name}.weight")
            if name in told or tensor is None or len(tensor.shape) != 2:
                continue
            if tensor.shape[1] not in wanted:
                told.add(name)
                yield _projection(model, tensor, index, wanted[0], store)


def _projection(
    model: Model, tensor: Tensor, index: int, wanted: int, store: Full | Sliding | Chunked
) -> Hit:
    query = ".attn_q." in tensor.name
    key, length = (
        ("attention.head_count", store.key_length)
        if query
        else (
            "attention.head_count_kv",
            store.value_length if ".attn_v." in tensor.name else store.key_length,
        )
    )
    rows = tensor.shape[1]
    field = model.fields.find(key)
    origin = Origin.KEY if field is not None else Origin.RUNTIME_DEFAULT
    heads, rest = divmod(rows, length) if length else (0, rows)
    repair: Repair = Reconvert()
    if not rest and field is not None and isinstance(field.value, int):
        repair = SetKey(key=field.key, value=heads, present=True)
    absent = "" if field is not None else ", absent, so the default"
    return Hit(
        message=(
            f"needs {wanted} rows ({model.fields.key(key)}{absent} {wanted // length if length else 0}"
            f" x {length} elements), {tensor.name} has {rows}"
        ),
        where=Where(
            key=model.fields.key(key), tensor=tensor.name, layer=index, offset=tensor.info_offset
        ),
        expected=rows,
        actual=wanted,
        origin=origin,
        level=Severity.ERROR,
        repair=repair,
    )


def _heads(model: Model) -> tuple[int, ...] | None:
    blocks = _integer(model, "block_count")
    if blocks is None:
        return None
    try:
        return model.fields.per_block("attention.head_count", blocks)
    except Refused:
        return None


def _integer(model: Model, key: str) -> int | None:
    """Read a key whose wrong type is another rule's cause."""
    try:
        return model.fields.integer(key)
    except Refused:
        return None


RULE = Rule(
    id="ARCH003",
    name="metadata-shape-mismatch",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("KV106", "ARCH002"),
    authority="llama.cpp b11434 src/llama-model-loader.cpp check_tensor_dims, done_getting_tensors",
)

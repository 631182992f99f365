"""The file was made by a converter of years ago.

## What it does
Reads off when a file was made: what later converters write and this file lacks, and what
only early ones wrote. Speaks where experts are stored one by one, or where two signs
agree; then what other rules say of these signs stands under this finding. A file that also
has what only later converters write wasn't made early, it lost something: then those rules
speak for themselves.

## Why it matters
An old layout is refused (single experts), needs several times the memory (unpacked
latents) or splits text otherwise than in training (no pre-tokenizer). One thing helps
against all of it.

## Fix
Reconvert from the checkpoint with a current converter, or fetch a newer file.

## Authority
llama.cpp pull requests 2268 (RoPE scaling keys, November 2023), 6505 (stacked experts,
April 2024), 6920 (pre-tokenizers, April 2024), 12801 (latents of DeepSeek, April 2025);
b11434 `src/llama-arch.cpp: LLM_TENSOR_NAMES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

SINGLE_EXPERT = re.compile(r"blk\.[0-9]{1,9}\.ffn_(?:up|down|gate)\.[0-9]{1,9}\.weight")
PRE = "tokenizer.ggml.pre"
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


class _Sign(Struct, frozen=True):
    """Something that files made since a month don't show."""

    year: int
    month: int
    text: str
    #: Keys that other rules name where they say the same.
    keys: tuple[str, ...] = ()
    tensor: str | None = None

    @property
    def since(self) -> tuple[int, int]:
        """When converters began to do otherwise."""
        return self.year, self.month


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the file shows that it is old."""
    del settings
    newest = _newest(model)
    signs = [sign for sign in _signs(model) if sign.since > newest]
    single = next((sign.tensor for sign in signs if sign.tensor is not None), None)
    if single is None and len(signs) < 2:
        return
    first = min(signs, key=lambda sign: sign.since)
    when = f"{MONTHS[first.month - 1]} {first.year}"
    tensor = model.gguf.tensors.get(single) if single is not None else None
    refused = ", which llama.cpp refuses" if tensor is not None else ""
    yield Hit(
        message=f"needs what converters write today, this file was made before {when}{refused}: "
        + "; ".join(sign.text for sign in signs),
        where=Where(tensor=single, offset=None if tensor is None else tensor.info_offset),
        expected="a current conversion",
        actual=f"made before {when}",
        level=Severity.WARNING if tensor is None else Severity.ERROR,
        repair=Reconvert(),
        also=(*(key for sign in signs for key in sign.keys), *_alike(single)),
    )


def _alike(first: str | None) -> Iterator[str]:
    """Yield the single experts, and the stacks that they should be, of the first block."""
    if first is None:
        return
    block = first[: first.index(".ffn_")]
    for part in ("gate", "down", "up"):
        yield from (f"{block}.ffn_{part}_exps.weight", f"{block}.ffn_{part}.0.weight")


def _signs(model: Model) -> Iterator[_Sign]:
    fields, gguf = model.fields, model.gguf
    if "rope.scale_linear" in fields:
        keys = (fields.key("rope.scale_linear"),)
        yield _Sign(2023, 11, f"{keys[0]} is a name of then", keys)
    single = next((name for name in gguf.tensors if SINGLE_EXPERT.fullmatch(name)), None)
    if single is not None:
        yield _Sign(2024, 4, f"experts are stored one by one ({single})", tensor=single)
    if gguf.string("tokenizer.ggml.model") == "gpt2" and PRE not in gguf.fields:
        yield _Sign(2024, 5, f"{PRE} is absent", (PRE,))
    if _unpacked(model):
        names = ("attention.key_length_mla", "attention.value_length_mla")
        yield _Sign(2025, 4, "latents are kept unpacked", tuple(map(fields.key, names)))


def _unpacked(model: Model) -> bool:
    """Tell a DeepSeek file from before its latents could be kept."""
    tensors = model.gguf.tensors
    return (
        model.fields.architecture == "deepseek2"
        and "attention.key_length_mla" not in model.fields
        and "blk.0.attn_kv_b.weight" in tensors
        and "blk.0.attn_k_b.weight" not in tensors
    )


def _newest(model: Model) -> tuple[int, int]:
    """Return since when converters have written the youngest thing that the file has."""
    gguf = model.gguf
    found = [(2023, 8)]
    if _any(gguf, "blk.", "_exps.weight"):
        found.append((2024, 4))
    if PRE in gguf.fields:
        found.append((2024, 5))
    if any(key in gguf.fields for key in ("general.size_label", "general.type")):
        found.append((2024, 7))
    if any(key.startswith("general.sampling.") for key in gguf.fields):
        found.append((2025, 10))
    return max(found)


def _any(gguf: Gguf, start: str, end: str) -> bool:
    return any(name.startswith(start) and name.endswith(end) for name in gguf.tensors)


RULE = Rule(
    id="ARCH009",
    name="outdated-conversion",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    authority="llama.cpp pull requests 2268, 6505, 6920, 12801; b11434 src/llama-arch.cpp",
)

"""The tensor tables: what a model of each architecture is made of.

One section per architecture, or for several that are made of the same:

    [llama-embed llama]
      model: token_embd embd vocab; output? embd vocab
      each: attn_norm embd; +qkv embd key*heads key*kv_heads value*kv_heads
      each experts: ffn_gate_inp embd experts

A line says where its tensors are and on what condition: ``model`` once, ``each`` in every
block, ``encoder`` and ``decoder`` in every block of one of T5's stacks. Then each tensor
with its sizes, the contiguous one first, ``_`` for one that metadata can't tell. Names end
in ``.weight`` unless they end in ``.bias`` or ``=``, which stands for no suffix. ``?`` marks
what llama.cpp does without, ``~`` what it takes in any shape of that many elements, ``+`` a
group of tensors below, ``+group?`` one that all may be lacking; ``@name`` on the condition that the same block has that tensor.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["FILES", "Row", "Scope", "known", "rows_of", "sections"]

Scope = Literal["model", "each", "encoder", "decoder"]

#: Where tables are, the likely ones first.
FILES = ("decoders.txt", "mixtures.txt", "states.txt", "latents.txt", "encoders.txt")

#: Groups of tensors that many architectures have; ``$1`` is the first size given.
GROUPS = {
    "ends": "token_embd embd vocab; output_norm embd; output? embd vocab",
    "untied": "token_embd embd vocab; output_norm embd; output embd vocab",
    # create_tensor_qkv: one fused projection, or three; biases of either
    "qkv": (
        "attn_qkv? $1 $2+$3+$4; attn_qkv.bias? $2+$3+$4; attn_q $1 $2 if !@attn_qkv; "
        "attn_k $1 $3 if !@attn_qkv; attn_v $1 $4 if !@attn_qkv; "
        "attn_q.bias? $2; attn_k.bias? $3; attn_v.bias? $4"
    ),
    # create_tensor_gate_up_exps
    "gate_up": (
        "ffn_gate_up_exps? $1 2*$2 $3; ffn_gate_exps $1 $2 $3 if !@ffn_gate_up_exps; "
        "ffn_up_exps $1 $2 $3 if !@ffn_gate_up_exps"
    ),
    "gated": "ffn_gate embd $1; ffn_down $1 embd; ffn_up embd $1",
    "gated_biases": "ffn_gate.bias? $1; ffn_down.bias? embd; ffn_up.bias? $1",
    "experts": (
        "ffn_gate_exps embd $1 experts; ffn_down_exps $1 embd experts; ffn_up_exps embd $1 experts"
    ),
    "optional_experts": (
        "ffn_gate_exps? embd $1 experts; ffn_down_exps? $1 embd experts; "
        "ffn_up_exps? embd $1 experts"
    ),
    "shared": "ffn_gate_shexp embd $1; ffn_down_shexp $1 embd; ffn_up_shexp embd $1",
    "drafts": (
        "nextn.eh_proj 2*embd embd; nextn.enorm embd; nextn.hnorm embd; "
        "nextn.embed_tokens? embd vocab; nextn.shared_head_head? embd vocab; "
        "nextn.shared_head_norm? embd"
    ),
}


class Row(Struct, frozen=True, kw_only=True):
    """One tensor, or one in each block, of an architecture."""

    scope: Scope
    #: Without the block in front of it.
    name: str
    #: An expression each, ``_`` for any size.
    sizes: tuple[str, ...]
    required: bool
    #: llama.cpp takes any shape of as many elements.
    any_shape: bool
    #: An expression, "" for always.
    condition: str


@functools.cache
def rows_of(architecture: str) -> tuple[Row, ...] | None:
    """Return what a model of an architecture is made of, ``None`` where nobody says."""
    for file in FILES:
        for names, body in sections(file):
            if architecture in names:
                return tuple(_rows(body))
    return None


def known() -> frozenset[str]:
    """Return every architecture that the tables have."""
    return frozenset(name for file in FILES for names, _ in sections(file) for name in names)


@functools.cache
def sections(file: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return the names and the body of each section of a file."""
    text = Path(__file__).with_name(file).read_text("utf-8")
    found: list[tuple[tuple[str, ...], str]] = []
    for section in text.split("\n[")[1:]:
        names, _, body = section.partition("]\n")
        found.append((tuple(names.split()), body))
    return tuple(found)


def _rows(body: str) -> Iterator[Row]:
    # a line that goes on is indented further
    for line in re.sub(r"\n {4,}", " ", body).splitlines():
        head, colon, entries = line.strip().partition(": ")
        if colon:
            scope, _, condition = head.partition(" ")
            for entry in entries.split("; "):
                yield from _entry(cast("Scope", scope), condition, entry)


def _entry(scope: Scope, condition: str, entry: str) -> Iterator[Row]:
    if entry.startswith("+"):
        group, *values = entry[1:].split()
        rows = _group(scope, condition, GROUPS[group.rstrip("?")], values)
        yield from (replace(row, required=False) for row in rows) if "?" in group else rows
        return
    entry, _, own = entry.partition(" if ")
    name, *sizes = entry.split()
    plain = name.rstrip("?~")
    marks = name[len(plain) :]
    if plain.endswith("="):
        plain = plain[:-1]
    elif not plain.endswith(".bias"):
        plain += ".weight"
    yield Row(
        scope=scope,
        name=plain,
        sizes=tuple(sizes),
        required="?" not in marks,
        any_shape="~" in marks,
        condition=" & ".join(_grouped(each) for each in (condition, own) if each),
    )


def _group(scope: Scope, condition: str, entries: str, values: list[str]) -> Iterator[Row]:
    for number, value in enumerate(values, start=1):
        entries = entries.replace(f"${number}", _grouped(value))
    for entry in entries.split("; "):
        yield from _entry(scope, condition, entry)


def _grouped(expression: str) -> str:
    """Return an expression that keeps together whatever stands beside it."""
    return expression if re.fullmatch(r"!?[@\w.]+", expression) else f"({expression})"

"""llama.cpp has a number built in where the model says another.

## What it does
Compares what the reference's `config.json` says with what llama.cpp computes with in place
of a key: how the queries of Gemma 2 and 3 are scaled, which it takes from the number of
blocks, and whether queries and keys of Llama 4 are normalized, which it takes from the
number of experts. The file is not to blame, so this is never more than an info.

## Why it matters
A model with blocks removed or added, or with other experts, is computed in another way than
it was trained, and nothing is printed. For the published models the numbers are right.

## Fix
None in the file: no key holds it. Use an engine that reads it from the checkpoint, or scale
the weights before converting.

## Authority
llama.cpp b11434, `src/models/gemma2.cpp`, `gemma3.cpp`, `gemma-embedding.cpp`
(`f_attention_scale`) and `llama4.cpp` (`use_kq_norm`); `query_pre_attn_scalar` and
`use_qk_norm` in `config.json`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Fields
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit.text_model import text_part
from gguf_audit.where import Where

#: Architecture -> number of blocks of the one model whose scale goes by its width.
WIDEST: Mapping[str, int | None] = {"gemma2": 46, "gemma3": 62, "gemma-embedding": None}
#: Number of experts of the one Llama 4 that doesn't normalize queries and keys.
WITHOUT_NORM = 128


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit where llama.cpp computes otherwise than the configuration says."""
    del settings
    config, fields = conversion.checkpoint.config, conversion.expected_fields
    if isinstance(config, Absent) or isinstance(fields, Absent):
        return
    said = text_part(config) or config
    scalar, norm = said.get("query_pre_attn_scalar"), said.get("use_qk_norm")
    if fields.architecture in WIDEST:
        if isinstance(scalar, int | float) and not isinstance(scalar, bool):
            yield from _scale(fields, scalar)
    elif fields.architecture == "llama4" and isinstance(norm, bool):
        yield from _norm(fields, wanted=norm)


def _scale(fields: Fields, wanted: float) -> Iterator[Outcome]:
    blocks = fields.integer("block_count")
    if blocks is not None and blocks == WIDEST[fields.architecture]:
        width, heads = fields.integer("embedding_length"), _integer(fields, "attention.head_count")
        built_in = width // heads if width and heads else None
    else:
        built_in = _integer(fields, "attention.key_length")
    if built_in is None or math.isclose(built_in, wanted):
        return
    yield Hit(
        message=f"needs queries scaled by 1/sqrt({wanted:g}), llama.cpp scales those of "
        f"{fields.architecture} with {blocks} blocks by 1/sqrt({built_in}) whatever the file says",
        where=Where(key=fields.key("block_count")),
        expected=wanted,
        actual=built_in,
        level=Severity.INFO,
    )


def _norm(fields: Fields, *, wanted: bool) -> Iterator[Outcome]:
    experts = fields.integer("expert_count")
    built_in = experts != WITHOUT_NORM
    if experts is None or built_in is wanted:
        return
    yield Hit(
        message=f"needs queries and keys {_normalized(wanted)}, with {experts} experts they "
        f"are {_normalized(built_in)} in llama.cpp whatever the file says",
        where=Where(key=fields.key("expert_count")),
        expected=wanted,
        actual=built_in,
        level=Severity.INFO,
    )


def _integer(fields: Fields, name: str) -> int | None:
    found = arch.effective(fields, name)
    return found.value if found is not None and isinstance(found.value, int) else None


def _normalized(is_so: bool) -> str:
    return "normalized" if is_so else "left as they are"


RULE = Rule(
    id="ARCH010",
    name="built-in-differs",
    levels=(Severity.INFO,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    authority="llama.cpp b11434 src/models/gemma2.cpp, gemma3.cpp f_attention_scale, llama4.cpp "
    "use_kq_norm",
)

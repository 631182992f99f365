"""The file has another number of blocks than the model.

## What it does
Compares `block_count`, without the multi-token-prediction blocks at its end, with the
reference's number of layers. Where `block_count` itself is right, `nextn_predict_layers`
is what went wrong.

## Why it matters
llama.cpp builds that many blocks: with fewer, the rest of the tensors is an error on load
or, in a file that was cut to fit, another model; with more, tensors are missing.

## Fix
Reconvert. If prediction blocks were dropped on purpose, `nextn_predict_layers` has to be
lowered with `block_count`.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (`n_layer = block_count -
nextn_predict_layers`); the checkpoint's `num_hidden_layers`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.errors import Refused
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Fields, Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

BLOCKS = "block_count"
DRAFTS = "nextn_predict_layers"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the trunk has another number of blocks."""
    del settings
    if isinstance(conversion.expected_fields, Absent):
        return
    fields = conversion.model.fields
    expected = _trunk(conversion.expected_fields)
    try:
        actual = _trunk(fields)
        same_blocks = fields.integer(BLOCKS) == conversion.expected_fields.integer(BLOCKS)
    except Refused:
        return  # A wrong type is load-refused's cause.
    if expected is None or actual is None or expected == actual:
        return
    key = fields.key(DRAFTS if same_blocks else BLOCKS)
    yield Hit(
        message=(
            f"needs {expected} blocks, {key} makes it {actual} (prediction blocks not counted)"
        ),
        where=Where(key=key),
        expected=expected,
        actual=actual,
        origin=Origin.RUNTIME_DEFAULT if same_blocks and DRAFTS not in fields else Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _trunk(fields: Fields) -> int | None:
    blocks = fields.integer(BLOCKS)
    return None if blocks is None else blocks - (fields.integer(DRAFTS) or 0)


RULE = Rule(
    id="ARCH002",
    name="block-count-changed",
    levels=(Severity.ERROR,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams; config.json num_hidden_layers",
)

"""The training context is not the model's.

## What it does
Compares `context_length` with what a right conversion writes. A longer one is in order if
the file scales RoPE by that factor.

## Why it matters
The runtime takes it for the default context and for YaRN's correction range. Too long and
the model is run where it was never trained, without a warning; too short and users get
less than they could, with one.

## Fix
`gguf-set-metadata` changes the key in place. If it is absent, llama.cpp refuses the file:
reconvert.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (`n_ctx_train`, required); the
converter's order of `max_position_embeddings` and its aliases.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.errors import Refused
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.fields import Fields, Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    OnConversion,
    Outcome,
    Reconvert,
    Rule,
    SetKey,
    Severity,
)
from gguf_audit.where import Where
from gguf_audit_rules.ctx._compare import same

KEY = "context_length"
FACTOR = "rope.scaling.factor"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the length differs and no scaling explains it."""
    del settings
    if isinstance(conversion.expected_fields, Absent):
        return
    fields = conversion.model.fields
    expected = conversion.expected_fields.integer(KEY)
    accepted = (expected, *conversion.expected_fields.alternatives(KEY))
    try:
        actual = fields.integer(KEY)
    except Refused:
        return  # A wrong type is load-refused's cause.
    if expected is None or actual in accepted:
        return
    full_key = fields.key(KEY)
    if actual is None:
        yield Hit(
            message=f"needs {expected} tokens of training context, {full_key} is absent: "
            "llama.cpp refuses the file",
            where=Where(key=full_key),
            expected=expected,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
        return
    level, comment = _judged(fields, actual, expected)
    if level is Severity.INFO and not same(_factor(fields), _factor(conversion.expected_fields)):
        return  # The scaling that explains it is new too: rope-scaling-changed's cause.
    yield Hit(
        message=f"needs {expected} tokens of training context, {full_key} is {actual}{comment}",
        where=Where(key=full_key),
        expected=expected,
        actual=actual,
        origin=Origin.KEY,
        level=level,
        repair=(
            None if level is Severity.INFO else SetKey(key=full_key, value=expected, present=True)
        ),
    )


def _judged(fields: Fields, actual: int, expected: int) -> tuple[Severity, str]:
    if actual < expected:
        return Severity.WARNING, ": the runtime stops short of what the model can do"
    scale = _factor(fields)
    original = arch.effective(fields, "rope.scaling.original_context_length")
    lengths = {expected}
    if original is not None and original.origin is Origin.KEY and isinstance(original.value, int):
        # Qwen3 is trained for 40,960 tokens and extended from 32,768 of them.
        lengths.add(original.value)
    if scale > 1 and actual in {round(length * scale) for length in lengths}:
        return Severity.INFO, f", extended on purpose: the file scales RoPE by {scale:.10g}"
    return Severity.ERROR, " and no RoPE scaling in the file explains it"


def _factor(fields: Fields) -> float:
    factor = arch.effective(fields, FACTOR)
    return factor.value if factor is not None and isinstance(factor.value, int | float) else 1


RULE = Rule(
    id="CTX001",
    name="context-length-changed",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams; config.json "
    "max_position_embeddings",
)

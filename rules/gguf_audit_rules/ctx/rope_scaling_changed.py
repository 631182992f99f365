"""The RoPE scaling in effect is not the model's.

## What it does
Compares type, factor, original context and YaRN's attention factor as llama.cpp reads them
with those of a right conversion. A lost type leaves linear scaling, a lost factor none.

## Why it matters
Beyond the original context the model computes positions it was never trained for; with the
wrong type also within it. Nothing is printed.

## Fix
Keys that are present can be set in place with `gguf-set-metadata`; absent ones need a new
conversion. A scaling added on purpose to extend the context is reported as info.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (`rope.scaling.*`) and
`src/llama-context.cpp`; the checkpoint's `rope_scaling` or `rope_parameters`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.subject import Absent, Fields
from gguf_audit.where import Where
from gguf_audit_rules.ctx._compare import same

TYPE = "rope.scaling.type"
FACTOR = "rope.scaling.factor"
ORIGINAL = "rope.scaling.original_context_length"
CONTEXT = "context_length"
ATTENTION = "rope.scaling.attn_factor"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the scaling differs in anything that has an effect."""
    del settings
    if isinstance(conversion.expected_fields, Absent):
        return
    fields = conversion.model.fields
    expected, actual = _scaling(conversion.expected_fields), _scaling(fields)
    if ORIGINAL not in fields and ORIGINAL not in conversion.expected_fields:
        # Both take it from the context length, which is context-length-changed's.
        expected.pop(ORIGINAL, None)
        actual.pop(ORIGINAL, None)
    differing = [
        key for key in {**expected, **actual} if not same(expected.get(key), actual.get(key))
    ]
    if not differing:
        return
    key = differing[0]
    found = arch.effective(fields, key)
    extended = not expected and actual.get(TYPE) == "yarn"
    yield Hit(
        message=f"needs {_said(expected)}, this file has {_said(actual)}"
        + (
            f", which extends the context to {_effective(fields, CONTEXT)} tokens on purpose"
            if extended
            else ""
        ),
        where=Where(key=fields.key(key)),
        expected=expected or None,
        actual=actual or None,
        origin=None if found is None else found.origin,
        level=Severity.INFO if extended else Severity.ERROR,
        repair=None if extended else Reconvert(),
    )


def _scaling(fields: Fields) -> dict[str, object]:
    """Return what has an effect: nothing for a factor of one, type and factor for linear."""
    kind = _effective(fields, TYPE)
    factor = _effective(fields, FACTOR)
    scaling: dict[str, object] = {}
    if kind in ("linear", "yarn") and factor in (None, 0, 1):
        kind = None  # By any type, a factor of one scales nothing.
    if kind not in (None, "none"):
        scaling = {TYPE: kind, FACTOR: factor}
        if kind in ("yarn", "longrope"):
            scaling[ORIGINAL] = _effective(fields, ORIGINAL)
    if (attention := _effective(fields, ATTENTION)) not in (None, 1):
        scaling[ATTENTION] = attention
    return scaling


def _effective(fields: Fields, key: str) -> object:
    found = arch.effective(fields, key)
    return None if found is None else found.value


def _said(scaling: dict[str, object]) -> str:
    if not scaling:
        return "no RoPE scaling"
    parts = [f"{key.removeprefix('rope.scaling.')} {value}" for key, value in scaling.items()]
    return "RoPE scaling of " + ", ".join(parts)


RULE = Rule(
    id="CTX003",
    name="rope-scaling-changed",
    levels=(Severity.ERROR, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams rope.scaling; "
    "config.json rope_scaling",
)

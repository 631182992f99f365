"""The RoPE scaling in effect is not the model's.

## What it does
Compares type, factor, original context, attention factor and YaRN's betas and multipliers,
as far as the architecture reads them, with those of a right conversion. A lost type leaves
linear scaling, a lost factor none. A value that llama.cpp doesn't read is a warning.

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
from gguf_audit.fields import Fields, Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.ctx._compare import same

TYPE = "rope.scaling.type"
FACTOR = "rope.scaling.factor"
ORIGINAL = "rope.scaling.original_context_length"
CONTEXT = "context_length"
ATTENTION = "rope.scaling.attn_factor"
ALPHA = "rope.scaling.alpha"
#: What YaRN knows besides; most architectures keep the runtime's own.
YARN = (
    "rope.scaling.yarn_ext_factor",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_log_multiplier",
)
#: Below 0 for not set: then YaRN extrapolates fully (llama-context.cpp).
EXTRAPOLATION = "rope.scaling.yarn_ext_factor"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if the scaling differs in anything that has an effect."""
    del settings
    fields, wanted = conversion.model.fields, conversion.expected_fields
    if isinstance(wanted, Absent) or not arch.rotates(fields.architecture):
        return
    expected, actual = _scaling(wanted), _scaling(fields)
    if ORIGINAL not in fields and ORIGINAL not in wanted:
        # Both take it from the context length, which is context-length-changed's.
        expected.pop(ORIGINAL, None)
        actual.pop(ORIGINAL, None)
    elif ORIGINAL in wanted and TYPE not in expected:
        # Phi 3's tensors have no type beside them.
        expected[ORIGINAL] = _effective(wanted, ORIGINAL)
        actual[ORIGINAL] = _effective(fields, ORIGINAL)
    differing = [
        key for key in {**expected, **actual} if not same(expected.get(key), actual.get(key))
    ]
    if not differing:
        yield from _unread(fields, wanted)
        return
    key = differing[0]
    found = arch.effective(fields, key)
    extended = TYPE not in expected and actual.get(TYPE) == "yarn"
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


def _unread(fields: Fields, wanted: Fields) -> Iterator[Outcome]:
    """Yield a warning for each value that llama.cpp has no use for, and that is wrong."""
    for name in YARN:
        found, right = fields.find(name), wanted.find(name)
        if found is None or right is None or same(found.value, right.value):
            continue
        if not arch.reads(fields.architecture, name):
            yield Hit(
                message=f"needs {name} {right.value}, {found.key} is {found.value}; "
                "llama.cpp doesn't read it, other engines may",
                where=Where(key=found.key),
                expected=right.value,
                actual=found.value,
                origin=Origin.KEY,
                level=Severity.WARNING,
                repair=Reconvert(),
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
        if kind == "yarn":
            scaling |= _yarn(fields)
    if (attention := _effective(fields, ATTENTION)) not in (None, 1):
        scaling[ATTENTION] = attention
    if (alpha := _effective(fields, ALPHA)) not in (None, 0):
        scaling[ALPHA] = alpha
    return scaling


def _yarn(fields: Fields) -> dict[str, object]:
    """Return what YaRN is told and that isn't the runtime's own value for every model."""
    found: dict[str, object] = {}
    for name in YARN:
        if not arch.reads(fields.architecture, name):
            continue
        value = _set(name, _effective(fields, name))
        if value not in (None, _set(name, _usual(fields, name))):
            found[name] = value
    return found


def _set(name: str, value: object) -> object:
    unset = name == EXTRAPOLATION and isinstance(value, int | float) and value < 0
    return 1.0 if unset else value


def _usual(fields: Fields, name: str) -> object:
    """Return what the architecture uses for a key that isn't there."""
    return _effective(Fields(fields.architecture, {}), name)


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
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    defers_to=("ARCH007",),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams rope.scaling; "
    "config.json rope_scaling",
)

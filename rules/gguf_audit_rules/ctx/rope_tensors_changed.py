"""The tensors that scale RoPE are missing, wrong, or don't belong to the model.

## What it does
Some scalings are stored as a tensor: Llama 3.1's as `rope_freqs.weight`, LongRoPE's as
`rope_factors_long.weight` and `rope_factors_short.weight`, Gemma 4's partial rotation as
`rope_freqs.weight`. Compares which of them the file has with what the reference's RoPE
parameters ask for, and their values, a few hundred numbers, with what the converter makes of
these. Values are left alone where the parameters don't state all that they are made of.

## Why it matters
llama.cpp takes them as optional: without them it rotates unscaled, and nothing is printed.
With another model's values, or the long factors in the place of the short ones, it rotates
wrongly, and nothing is printed either.
Files made before July 2024 lack Llama 3.1's; they lose the thread beyond 8,192 tokens.

## Fix
Reconvert with a current converter: no metadata tool can add a tensor.

## Authority
llama.cpp b11434, `src/llama-model.cpp: get_rope_factors`, `TENSOR_NOT_REQUIRED` in
`src/models/*.cpp`; `conversion/`, `generate_extra_tensors`; pull request 8676.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from gguf_audit import arch
from gguf_audit.errors import AuditError
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, NoEvidence, OnConversion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

#: The converter computes in 32 bits, some in another order.
TOLERANCE = 1e-4
FREQUENCIES = "rope_freqs.weight"
FACTORS = ("rope_factors_long.weight", "rope_factors_short.weight")


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit if tensors are missing, one if there is one too many, or what is wrong."""
    del settings
    present = conversion.model.gguf.tensors
    wanted = _wanted(conversion)
    if not present or wanted is None:
        return
    missing = [name for name in wanted if name not in present]
    extra = [name for name in (FREQUENCIES, *FACTORS) if name in present and name not in wanted]
    if missing:
        yield Hit(
            message=f"needs {' and '.join(missing)} for {wanted[missing[0]]} RoPE scaling, "
            "absent: llama.cpp rotates unscaled and says nothing",
            where=Where(tensor=missing[0]),
            expected=list(wanted),
            actual=[name for name in wanted if name in present],
            level=Severity.ERROR,
            repair=Reconvert(hint="made before the converter wrote them, or cut"),
            also=tuple(missing),
        )
    elif extra:
        tensor = present[extra[0]]
        yield Hit(
            message=f"needs no RoPE tensor, this file has {' and '.join(extra)}: "
            "positions are rotated otherwise than in the reference",
            where=Where(tensor=tensor.name, offset=tensor.info_offset),
            expected=[],
            actual=extra,
            level=Severity.WARNING,
            repair=Reconvert(hint="or name the right reference"),
        )
    else:
        yield from _values(conversion, tuple(wanted))


def _values(conversion: Conversion, names: tuple[str, ...]) -> Iterator[Outcome]:
    """Yield one hit for all tensors with other values, on the first one."""
    differing: list[Hit] = []
    for name in names:
        actual = conversion.model.gguf.values(name)
        if isinstance(actual, Absent):
            yield NoEvidence(actual.reason)
            continue
        expected = _expected(conversion, name, len(actual))
        # Another number of them is another rule's cause.
        if expected is not None and len(expected) == len(actual):
            differing.extend(_difference(conversion, name, expected, actual))
    if differing:
        others = tuple(hit.message for hit in differing[1:])
        yield replace(differing[0], consequences=others)


def _difference(
    conversion: Conversion, name: str, expected: tuple[float, ...], actual: tuple[float, ...]
) -> Iterator[Hit]:
    pairs = zip(expected, actual, strict=True)
    wrong = [index for index, (want, have) in enumerate(pairs) if not _alike(want, have)]
    if not wrong:
        return
    first, tensor = wrong[0], conversion.model.gguf.tensors[name]
    yield Hit(
        message=f"needs {expected[first]:.10g} as factor {first} of {name}, it is "
        f"{actual[first]:.10g}; {len(wrong)} of {len(actual)} differ: positions are rotated "
        "otherwise than in the reference",
        where=Where(tensor=name, offset=tensor.info_offset),
        expected=expected[first],
        actual=actual[first],
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _alike(want: float, have: float) -> bool:
    return math.isclose(want, have, rel_tol=TOLERANCE)


def _expected(conversion: Conversion, name: str, count: int) -> tuple[float, ...] | None:
    """Return the values of a right conversion, ``None`` where nobody states them."""
    reference = conversion.checkpoint
    if reference.gguf is not None:
        values = reference.gguf.values(name)
        return None if isinstance(values, Absent) else values
    architecture = conversion.expected_architecture
    if isinstance(reference.config, Absent) or isinstance(architecture, Absent):
        return None
    return arch.rope_factors(architecture, reference.config, name, count)


def _wanted(conversion: Conversion) -> Mapping[str, str] | None:
    """Return the tensors of a right conversion, ``None`` where that isn't known."""
    architecture = conversion.expected_architecture
    if isinstance(architecture, Absent) or isinstance(conversion.expected_fields, Absent):
        return None
    reference = conversion.checkpoint
    if reference.gguf is not None:
        names = (FREQUENCIES, *FACTORS)
        has = reference.gguf.tensors
        return {name: "the reference's" for name in names if name in has} if has else None
    if isinstance(reference.config, Absent):
        return None
    try:
        return arch.rope_tensors(architecture, reference.config)
    except AuditError:
        return None  # Gathering the evidence has said why.


RULE = Rule(
    id="CTX005",
    name="rope-tensors-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    defers_to=("WT001",),
    authority="llama.cpp b11434 src/llama-model.cpp get_rope_factors; conversion "
    "generate_extra_tensors",
)

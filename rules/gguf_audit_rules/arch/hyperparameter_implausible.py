"""A hyper-parameter has a value that no model has.

## What it does
Looks at values that nothing else in the file contradicts: a context length of 0 or beyond
2,147,483,647, a RoPE base that isn't positive, a scaling factor below 0, an original context
length of 0, an epsilon of a norm that isn't between 0 and 0.1, and a vocabulary size that is
neither the number of tokens nor that of the embedding's rows. A scaling factor of 0 means none
to llama.cpp, so it is only told beside a type of scaling that needs one.

It is an error where llama.cpp refuses the file, dies, or computes with numbers that mean
nothing, and a warning where it goes on without the value.

## Why it matters
llama.cpp loads nearly all of these without a word. With a RoPE base of 0 or less every rotation
is NaN or infinite; an epsilon below 0 fails an assertion at the first token; without a context
length no context can be made of its default size.

## Fix
Take the value from the reference's `config.json`, or reconvert.

## Authority
llama.cpp b11434, `src/llama-model.cpp: load_hparams` (a scaling factor of 0 is taken for 1),
`src/llama-context.cpp: llama_init_from_model` (`n_ctx and n_ctx_train can't both be zero`),
`ggml/src/ggml-cpu/ops.cpp: ggml_compute_forward_rms_norm_f32` (`GGML_ASSERT(eps >= 0.0f)`),
`ggml/src/ggml.c: ggml_rope_yarn_corr_dims` (logarithm of the original context length),
`include/llama.h: llama_pos` (positions are signed 32-bit numbers).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gguf_audit import arch
from gguf_audit.errors import Refused
from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules._fields import integer

CONTEXT = "context_length"
#: ``llama_pos`` is an ``int32_t``.
POSITIONS = (1 << 31) - 1
BASES = ("rope.freq_base", "rope.freq_base_swa")
FACTOR = "rope.scaling.factor"
TYPE = "rope.scaling.type"
ORIGINAL = "rope.scaling.original_context_length"
#: Types of scaling that stretch by a factor, and those that ask for the original length.
STRETCHED = frozenset({"linear", "yarn"})
MEASURED = frozenset({"yarn", "longrope"})
EPSILONS = (
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.group_norm_epsilon",
)
#: Published ones are 1e-12 to 1e-3: this one would drown what it is added to.
LARGEST_EPSILON = 0.1
VOCABULARY = "vocab_size"
TOKENS = "tokenizer.ggml.tokens"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each value that can't be meant."""
    del settings
    if isinstance(model.architecture, Absent):
        return
    yield from _context(model)
    yield from _bases(model)
    yield from _scaling(model)
    yield from _epsilons(model)
    yield from _vocabulary(model)


def _context(model: Model) -> Iterator[Outcome]:
    found = integer(model.fields, CONTEXT)
    if found == 0:
        yield _hit(
            model,
            CONTEXT,
            "a number of positions above 0",
            found,
            "llama.cpp makes no context of its default size, which is this one",
        )
    elif found is not None and found > POSITIONS:
        yield _hit(
            model,
            CONTEXT,
            f"at most {POSITIONS} positions",
            found,
            "llama.cpp counts positions in signed 32-bit numbers, and takes this for the default "
            "size of a context",
        )


def _bases(model: Model) -> Iterator[Outcome]:
    for name in BASES:
        found = _number(model, name)
        if found is not None and found <= 0:
            yield _hit(
                model, name, "a base above 0", found, "llama.cpp rotates by what is no number"
            )


def _scaling(model: Model) -> Iterator[Outcome]:
    kind = _text(model, TYPE)
    factor = _number(model, FACTOR)
    if factor is not None and factor < 0:
        yield _hit(
            model, FACTOR, "a factor above 0", factor, "llama.cpp rotates in the other direction"
        )
    elif factor == 0 and kind in STRETCHED:
        yield _hit(
            model,
            FACTOR,
            f"a factor above 0 for {kind!r}",
            factor,
            "llama.cpp takes 1, which stretches nothing",
            level=Severity.WARNING,
        )
    if integer(model.fields, ORIGINAL) == 0:
        used = kind in MEASURED
        yield _hit(
            model,
            ORIGINAL,
            "a number of positions above 0",
            0,
            f"llama.cpp scales {kind!r} as if every position were beyond it"
            if used
            else "llama.cpp doesn't scale by it here",
            level=Severity.ERROR if used else Severity.WARNING,
        )


def _epsilons(model: Model) -> Iterator[Outcome]:
    for name in EPSILONS:
        found = _number(model, name)
        if found is None or 0 < found <= LARGEST_EPSILON:
            continue
        if found < 0:
            why = "llama.cpp aborts at the first token"
        elif found == 0:
            why = "llama.cpp divides by nothing where a row is all zeros"
        else:
            why = "llama.cpp divides by more than the values it is to keep from being 0"
        yield _hit(
            model,
            name,
            f"a number above 0 and at most {LARGEST_EPSILON}",
            found,
            why,
            level=Severity.WARNING if found == 0 else Severity.ERROR,
        )


def _vocabulary(model: Model) -> Iterator[Outcome]:
    """Compare with the list and with the rows: which of the two is wrong is TOK002's to say."""
    stated = integer(model.fields, VOCABULARY)
    listed = model.gguf.array(TOKENS)
    if stated is None or listed is None:
        return
    embedding = model.gguf.tensors.get("token_embd.weight")
    rows = embedding.shape[1] if embedding is not None and len(embedding.shape) == 2 else None
    if stated in (listed.count, rows):
        return
    yield _hit(
        model,
        VOCABULARY,
        f"{listed.count}, the number of tokens",
        stated,
        "llama.cpp goes by the list, engines that go by this key make another embedding",
        level=Severity.WARNING,
    )


def _number(model: Model, name: str) -> float | None:
    """Return a finite number that llama.cpp reads; other ones are value-type-wrong's."""
    if not arch.reads(model.fields.architecture, name):
        return None
    try:
        found = model.fields.number(name)
    except Refused:
        return None
    return found if found is not None and math.isfinite(found) else None


def _text(model: Model, name: str) -> str | None:
    field = model.fields.find(name)
    return field.value if field is not None and isinstance(field.value, str) else None


def _hit(
    model: Model,
    name: str,
    wanted: str,
    found: float,
    why: str,
    *,
    level: Severity = Severity.ERROR,
) -> Hit:
    key = model.fields.key(name)
    field = model.fields.find(name)
    return Hit(
        message=f"needs {wanted}, {key} is {found}: {why}",
        where=Where(key=key, offset=None if field is None else field.offset),
        expected=wanted,
        actual=found,
        origin=Origin.KEY,
        level=level,
        repair=Reconvert(hint="or set the key to what the reference has"),
    )


RULE = Rule(
    id="ARCH012",
    name="hyperparameter-implausible",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnModel(check),
    # What is said against a reference tells the right value as well.
    defers_to=("ARCH004", "ARCH005", "ARCH006", "CTX"),
    authority="llama.cpp b11434 src/llama-model.cpp load_hparams; src/llama-context.cpp "
    "llama_init_from_model",
)

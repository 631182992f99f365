"""A hyper-parameter in effect is not the model's.

## What it does
Compares every hyper-parameter that the converter writes for the reference with the value
that llama.cpp uses for this file: the key, else the runtime's own default. Keys of the
file that a right conversion lacks count too, where they change what the runtime computes.
A missing key whose default is the right value is none.

## Why it matters
Sizes and counts that don't fit end in an error on load, but many keys are optional: a lost
gating function turns sigmoid routing into softmax, a lost scale leaves experts unscaled, a
lost norm epsilon or softcap changes every layer. The model answers, a little or a lot worse,
and nothing is printed. A value that llama.cpp doesn't read for this architecture is a
warning: other engines may.

## Fix
A key that is present can be set in place with `gguf-set-metadata`; an absent one needs a new
conversion. So does a size that the tensors have too: setting the key alone breaks such a file,
and most often the reference is not this file's.

## Authority
llama.cpp b11434, `load_arch_hparams` in `src/models/*.cpp` and `src/llama-hparams.h` for
what is read and its defaults; `conversion/` for what is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Model, Settings
from gguf_audit.fields import Fields
from gguf_audit.gguf import Array
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    OnConversion,
    Outcome,
    Reconvert,
    Repair,
    Rule,
    Severity,
)
from gguf_audit.where import Where
from gguf_audit_rules.arch._values import Difference, Plain, differences, repair_of, said

#: Blocks, context and RoPE, windows and the kinds of layers have rules of their own.
ELSEWHERE = frozenset(
    {
        "attention.recurrent_layers",
        "attention.sliding_window",
        "attention.sliding_window_pattern",
        "block_count",
        "context_length",
        "full_attention_interval",
        "nextn_predict_layers",
    }
)
WINDOW = frozenset({"attention.sliding_window", "attention.sliding_window_pattern"})
#: Group-limited routing came to converter and runtime late: a file without the keys is
#: out of date, not broken, and every DeepSeek-V3 of its time is like it.
LATE = frozenset({"expert_group_count", "expert_group_used_count"})
#: Sizes that a tensor has too: its name, and which of its dimensions.
STORED_SIZES = {
    "embedding_length": ("token_embd.weight", 0),
    "feed_forward_length": ("blk.0.ffn_down.weight", 0),
}
#: What an enumeration's numbers stand for (llama-hparams.h, llama.h).
MEANINGS = {
    "expert_gating_func": {1: "softmax", 2: "sigmoid", 3: "softmax of weights", 4: "sqrtsoftplus"},
    "pooling_type": {0: "none", 1: "mean", 2: "cls", 3: "last", 4: "rank"},
}


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each hyper-parameter that differs."""
    del settings
    fields, wanted = conversion.model.fields, conversion.expected_fields
    if isinstance(wanted, Absent):
        return
    # Without a cache there is no layout in which a window could be missed.
    elsewhere = ELSEWHERE - WINDOW if _keeps_nothing(conversion.expected) else ELSEWHERE
    for found in differences(conversion):
        if found.name in elsewhere or found.name.startswith("rope."):
            continue
        key = fields.key(found.name)
        late = found.name in LATE and found.name not in fields
        if late and found.name == "expert_group_used_count" and "expert_group_count" not in fields:
            continue  # Told with the groups themselves.
        yield Hit(
            message=_message(fields, key, found),
            where=Where(key=key),
            expected=found.expected,
            actual=found.actual,
            origin=found.origin,
            level=Severity.ERROR if found.read and not late else Severity.WARNING,
            repair=_repair(conversion.model, wanted, found),
        )


def _keeps_nothing(layout: CacheLayout | Absent) -> bool:
    return isinstance(layout, CacheLayout) and not any(True for _ in layout.stores())


def _message(fields: Fields, key: str, found: Difference) -> str:
    actual = _shown(found.name, found.actual)
    stored = fields.find(found.name)
    if stored is not None and isinstance(stored.value, Array) and found.actual == ():
        state = f"is an array of {len(stored.value)} items"
    elif stored is not None:
        state = f"is {actual}"
    elif found.actual is None:
        state = "is absent"
    else:
        state = f"is absent, so it is {actual}"
    unread = "" if found.read else "; llama.cpp doesn't read it, other engines may"
    return f"needs {found.name} {_shown(found.name, found.expected)}, {key} {state}{unread}"


def _shown(name: str, value: Plain | None) -> str:
    meanings = MEANINGS.get(name, {})
    meaning = meanings.get(value) if isinstance(value, int) else None
    return said(value) if meaning is None else f"{said(value)} ({meaning})"


def _repair(model: Model, wanted: Fields, found: Difference) -> Repair:
    both = found.name in model.fields and found.name in wanted
    if both and _stored_size(model, found.name) not in (None, found.expected):
        return Reconvert(hint="or name the right reference")
    return repair_of(found, model.fields, wanted)


def _stored_size(model: Model, name: str) -> int | None:
    """Return how large the tensors are where a hyper-parameter says it too."""
    tensor, dimension = STORED_SIZES.get(name, ("", 0))
    stored = model.gguf.tensors.get(tensor)
    return None if stored is None or dimension >= len(stored.shape) else stored.shape[dimension]


RULE = Rule(
    id="ARCH006",
    name="hyperparameter-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.HYPERPARAMETERS}),
    defers_to=("ARCH007", "KV102", "KV103", "KV104", "KV105", "KV106", "KV108", "PKG049"),
    authority="llama.cpp b11434 src/models load_arch_hparams, src/llama-hparams.h; conversion",
)

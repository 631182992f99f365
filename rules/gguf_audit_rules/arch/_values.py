"""When two effective values of a hyper-parameter differ to llama.cpp, and what mends that."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from gguf_audit import arch
from gguf_audit.evidence import Conversion
from gguf_audit.fields import Fields, Origin
from gguf_audit.gguf import Scalar
from gguf_audit.layout import CacheLayout, Full, Latent
from gguf_audit.parts import Absent
from gguf_audit.rule import Reconvert, RemoveKey, Repair, SetKey
from gguf_audit_rules.ctx._compare import same

__all__ = ["Difference", "Plain", "differences", "repair_of", "said"]

Plain = Scalar | tuple[Scalar, ...]

#: Factors that change nothing (build_moe_ffn in src/llama-graph.cpp, src/models/*.cpp):
#: none at all and one.
NEUTRAL: dict[str, frozenset[Scalar]] = {
    "attention.value_scale": frozenset({0.0, 1.0}),
    "embedding_scale": frozenset({0.0, 1.0}),
    "expert_group_count": frozenset({0, 1}),
    "expert_weights_scale": frozenset({0.0, 1.0}),
    "logit_scale": frozenset({0.0, 1.0}),
    "residual_scale": frozenset({0.0, 1.0}),
}
#: Items of an array in a message.
SHOWN = 8
SCALE = "attention.scale"
VALUE = "attention.value_length"
EXPERTS = "expert_count"
GROUPS = "expert_group_count"
USED_GROUPS = "expert_group_used_count"
VOCABULARY = "vocab_size"


class Difference(Struct, frozen=True):
    """A key that doesn't have its value; ``None`` where no default stands in for it."""

    name: str
    expected: Plain
    actual: Plain | None
    #: Of the file's value; ``None`` without one.
    origin: Origin | None
    #: llama.cpp does something with it.
    read: bool


def differences(conversion: Conversion) -> Iterator[Difference]:
    """Yield every hyper-parameter of a file that isn't what a right conversion has."""
    wanted = conversion.expected_fields
    if isinstance(wanted, Absent):
        return
    fields = conversion.model.fields
    for name in _names(wanted, fields):
        found = _difference(fields, wanted, name)
        if found is not None and not _without_effect(conversion, wanted, found):
            yield found


def _names(*several: Fields) -> Iterator[str]:
    """Yield the names of all keys that stand under the architecture, each once."""
    told: set[str] = set()
    for fields in several:
        prefix = fields.key("")
        for field in fields:
            name = field.key.removeprefix(prefix)
            if fields.key(name) == field.key and name not in told:
                told.add(name)
                yield name


def _difference(fields: Fields, wanted: Fields, name: str) -> Difference | None:
    expected = arch.effective(wanted, name)
    if expected is None:
        return None
    actual = arch.effective(fields, name)
    stored = actual.value if actual is not None and name in fields else None
    if any(_alike(stored, other) for other in wanted.alternatives(name)):
        return None
    # The token list has the last word on the vocabulary's size (src/llama-vocab.cpp).
    read = name != VOCABULARY and arch.reads(fields.architecture, name)
    # Nothing uses it: other converters may leave it out.
    if not read and (name not in fields or name not in wanted):
        return None
    value = None if actual is None else actual.value
    if _alike(expected.value, value) or _neutral(name, expected.value, value, wanted):
        return None
    origin = None if actual is None else actual.origin
    return Difference(name, expected.value, value, origin, read)


def _alike(one: Plain | None, other: Plain | None) -> bool:
    """Compare as far as both go: draft blocks at the end may have been left out."""
    match one, other:
        case (tuple(), tuple()):
            return bool(one) == bool(other) and all(map(same, one, other))
        case (tuple(), _):
            return bool(one) and all(same(item, other) for item in one)
        case (_, tuple()):
            return _alike(other, one)
        case _:
            return same(one, other)


def _neutral(name: str, expected: Plain, actual: Plain | None, wanted: Fields) -> bool:
    if name == SCALE:
        length = arch.effective(wanted, "attention.key_length")
        if length is None or not isinstance(length.value, int) or length.value <= 0:
            return False
        usual = 1 / math.sqrt(length.value)
        return all(value == 0 or same(value, usual) for value in (expected, actual))
    return {expected, actual} <= NEUTRAL.get(name, frozenset())


def _without_effect(conversion: Conversion, wanted: Fields, found: Difference) -> bool:
    fields = conversion.model.fields
    if found.name == VALUE:
        # The latent is key and value at once.
        return _only_latents(conversion.model.implied) and _only_latents(conversion.expected)
    if found.name == USED_GROUPS:
        return not any(_count(each, GROUPS) > 1 for each in (fields, wanted))
    if found.name.startswith("expert_") and found.name != EXPERTS:
        return not any(_count(each, EXPERTS) for each in (fields, wanted))
    return False


def _only_latents(layout: object) -> bool:
    if not isinstance(layout, CacheLayout):
        return False
    kinds = {type(store) for _, store in layout.stores()}
    return Latent in kinds and Full not in kinds


def _count(fields: Fields, name: str) -> int:
    found = arch.effective(fields, name)
    return found.value if found is not None and isinstance(found.value, int) else 0


def repair_of(found: Difference, fields: Fields, wanted: Fields) -> Repair:
    """Return what gives a file the value of a right conversion."""
    stored = fields.find(found.name)
    if stored is not None and found.name not in wanted:
        return RemoveKey(key=stored.key)
    if (
        stored is not None
        and isinstance(stored.value, Scalar)
        and isinstance(found.expected, Scalar)
    ):
        return SetKey(key=stored.key, value=found.expected, present=True)
    return Reconvert()


def said(value: Plain | None) -> str:
    """Return a value as it stands in a message, a long array cut short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, tuple):
        shown = ", ".join(map(said, value[:SHOWN]))
        return f"[{shown}, ...] ({len(value)} items)" if len(value) > SHOWN else f"[{shown}]"
    return str(value) if not isinstance(value, str) else repr(value[:64])

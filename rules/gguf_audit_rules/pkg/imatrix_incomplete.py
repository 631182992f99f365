"""An importance matrix lacks something that llama-quantize asks for.

## What it does
Looks for the data sets (strings), the number of chunks and their size (u32), and for each entry
both `in_sum2` and `counts`: float32, as many matrices in one as in the other. `in_sum`, where it
is there, has to be as big as `in_sum2`. One that says that it was computed on no chunk is a
warning.

## Why it matters
llama-quantize stops at a missing key, dies of one of another type, and stops at an entry that is
not whole.

## Fix
Compute the importance matrix again with llama-imatrix.

## Authority
llama.cpp b11434, `tools/quantize/quantize.cpp: load_imatrix`, `tools/imatrix/imatrix.cpp:
load_imatrix`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Companion, Settings
from gguf_audit.gguf import Array, Field, Gguf, Tensor, ValueType
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules._fields import type_name
from gguf_audit_rules.wt._tensors import listed

KEYS = ("imatrix.datasets", "imatrix.chunk_count", "imatrix.chunk_size")
SUMS, COUNTS, SUM = ".in_sum2", ".counts", ".in_sum"
AGAIN = Reconvert(hint="compute it again with llama-imatrix")


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each missing key, one for each way in which entries aren't whole."""
    del settings
    gguf = companion.gguf
    for key in KEYS:
        yield from _key(gguf, key)
    names = dict.fromkeys(
        name.removesuffix(ending)
        for name in gguf.tensors
        for ending in (SUMS, COUNTS)
        if name.endswith(ending)
    )
    if not names:
        yield _hit("needs an entry for each weight, the file has none", where=Where())
    halves = [
        name + ending
        for name in names
        for ending in (SUMS, COUNTS)
        if name + ending not in gguf.tensors
    ]
    if halves:
        where = Where(tensor=halves[0])
        yield _hit(f"an entry needs in_sum2 and counts, {listed(halves)} not in the file", where)
    wrong = [name for name in names if name + SUMS not in halves and name + COUNTS not in halves]
    wrong = [name for name in wrong if not _whole(gguf, name)]
    if wrong:
        where = Where(tensor=wrong[0] + SUMS)
        yield _hit(f"in_sum2, counts and in_sum don't go together for {listed(wrong)}", where)


def _key(gguf: Gguf, key: str) -> Iterator[Outcome]:
    field = gguf.fields.get(key)
    if field is None:
        yield _hit(f"needs {key}, it is absent", where=Where(key=key))
        return
    where = Where(key=key, offset=field.offset)
    if key == KEYS[0]:
        right, wanted = _is_texts(field), "an array of strings"
    else:
        right, wanted = field.type is ValueType.UINT32, "a u32"
    if not right:
        yield _hit(f"needs {wanted}, {key} is {type_name(field)}", where=where)
    elif key == KEYS[1] and field.value == 0:
        message = f"needs some chunks, {key} is 0: nothing was computed, or the number is lost"
        yield _hit(message, where=where, level=Severity.WARNING)


def _is_texts(field: Field) -> bool:
    return isinstance(field.value, Array) and field.value.item_type is ValueType.STRING


def _whole(gguf: Gguf, name: str) -> bool:
    sums, counts = gguf.tensors[name + SUMS], gguf.tensors[name + COUNTS]
    whole = gguf.tensors.get(name + SUM, sums)
    return (
        all(each.type.name == "F32" for each in (sums, counts, whole))
        and _matrices(sums) == counts.elements
        and whole.elements == sums.elements
    )


def _matrices(tensor: Tensor) -> int:
    return tensor.elements // tensor.shape[0] if tensor.shape[0] else 0


def _hit(message: str, where: Where, level: Severity = Severity.ERROR) -> Hit:
    return Hit(message=message, where=where, level=level, repair=AGAIN)


RULE = Rule(
    id="PKG045",
    name="imatrix-incomplete",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("imatrix",)),
    authority="llama.cpp b11434 tools/quantize/quantize.cpp load_imatrix, "
    "tools/imatrix/imatrix.cpp load_imatrix",
)

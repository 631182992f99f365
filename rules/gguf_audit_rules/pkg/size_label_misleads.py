"""The size that the file names is far from the number of its parameters.

## What it does
Compares the parameters of all tensors with `general.size_label`, and with the one size in the
file's name if there is exactly one (`-8B-`). Only a factor of two is told: labels are rounded,
leave out embeddings or count what is in another file. Mixtures of experts, whose labels mean
this and that, are left out.

## Why it matters
People and tools plan memory and choose quants by the size. Half the parameters under the full
label are half a model, or another one.

## Fix
Rename the file and set the key to the size that it has, or find out which model it is.

## Authority
gguf-py `gguf/utility.py: size_label`; GGUF naming convention (ggml `docs/gguf.md`, *SizeLabel*).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

_KEY = "general.size_label"
_UNITS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]{1,4})(?:\.([0-9]{1,3}))?([KMBT])")
#: In a name; a number of thousands there is a context.
_IN_NAME = re.compile(
    r"(?<![A-Za-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,3})?[MB])(?![A-Za-z0-9.])", re.IGNORECASE
)
_FACTOR = 2


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit for each place that names a size far from the real one."""
    del settings
    gguf = model.gguf
    experts = any("_exps." in name or "_exp." in name for name in gguf.tensors)
    count = sum(tensor.elements for tensor in gguf.tensors.values())
    if experts or not any(name.startswith("blk.") for name in gguf.tensors):
        return
    label = gguf.string(_KEY)
    if label is not None and _far(label, count):
        yield _hit(f"{_KEY} is {label!r}", label, count, Where(key=_KEY))
        return
    stem = re.split(r"[/\\:]", gguf.name)[-1].removesuffix(".gguf")
    named = _IN_NAME.findall(stem)
    if len(named) == 1 and _far(named[0].upper(), count):
        yield _hit(f"the file's name says {named[0]}", named[0], count, Where())


def _far(label: str, count: int) -> bool:
    found = _SIZE.fullmatch(label)
    if found is None:
        return False  # A label such as 8x7B or 30B-A3B means something of its own.
    whole, fraction, unit = found.groups(default="")
    size = int(whole + fraction) * _UNITS[unit] // 10 ** len(fraction)
    return size > 0 and not size < _FACTOR * count < _FACTOR * _FACTOR * size


def _hit(says: str, label: str, count: int, where: Where) -> Hit:
    return Hit(
        message=f"needs about {_told(count)} parameters as it has, {says}",
        where=where,
        expected=count,
        actual=label,
        unit="parameter",
        level=Severity.INFO,
    )


def _told(count: int) -> str:
    for unit in "TBMK":
        if count >= _UNITS[unit]:
            tenths = count * 10 // _UNITS[unit]
            return (
                f"{tenths // 10}.{tenths % 10}{unit}" if tenths < 100 else f"{tenths // 10}{unit}"
            )
    return str(count)


RULE = Rule(
    id="PKG004",
    name="size-label-misleads",
    levels=(Severity.INFO,),
    check=OnModel(check),
    authority="gguf-py gguf/utility.py size_label; ggml docs/gguf.md",
)

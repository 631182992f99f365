"""A control vector is one that llama.cpp skips, or doesn't fit its model.

## What it does
Looks at the directions: float32, one dimension, all of one length, of layers from 1 on. With
a reference also whether that length is the model's width, whether its layers exist, and
whether `controlvector.model_hint` names the model's architecture.

## Why it matters
llama.cpp skips a file with a direction that it can't take, refuses one of another width, and
ignores directions of layers that the model doesn't have.

## Fix
Compute the control vector again on the model that it is for.

## Authority
llama.cpp b11434, `common/common.cpp: common_control_vector_load_one`,
`src/llama-adapter.cpp: llama_adapter_cvec::apply`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.errors import Refused
from gguf_audit.evidence import Companion, Settings
from gguf_audit.fields import Fields
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, OnCompanion, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import listed

DIRECTION = "direction."
HINT = "controlvector.model_hint"
AGAIN = Reconvert(hint="compute it again on its model")


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for directions that can't be taken, and those for another model."""
    del settings
    gguf = companion.gguf
    layers = _layers(gguf)
    if not layers:
        yield _hit("needs a tensor direction.N for a layer, the file has none", Where())
        return
    lengths = {gguf.tensors[name].elements for name in layers}
    odd = [
        name
        for name, layer in layers.items()
        if layer < 1 or gguf.tensors[name].type.name != "F32" or len(gguf.tensors[name].shape) > 1
    ]
    if odd:
        yield _hit(f"needs float32 vectors of layers from 1 on, unlike {listed(odd)}", _at(odd[0]))
    if len(lengths) > 1:
        has = ", ".join(map(str, sorted(lengths)))
        yield _hit(f"needs directions of one length, they have {has}", _at(next(iter(layers))))
    elif not odd and isinstance(companion.base, Fields):
        yield from _of_model(gguf, layers, companion.base)


def _layers(gguf: Gguf) -> dict[str, int]:
    """Return the layer of each direction, -1 for one whose name has no number."""
    found: dict[str, int] = {}
    for name in gguf.tensors:
        if name.startswith(DIRECTION):
            number = name.removeprefix(DIRECTION)
            plain = number.isascii() and number.isdigit() and len(number) < 7
            found[name] = int(number) if plain else -1
    return found


def _of_model(gguf: Gguf, layers: dict[str, int], base: Fields) -> Iterator[Outcome]:
    hint = gguf.string(HINT)
    if hint is not None and hint != base.architecture:
        yield _hit(
            f"the model is {base.architecture!r}, {HINT} is {hint!r}",
            Where(key=HINT),
            level=Severity.WARNING,
        )
    try:
        width, blocks = base.integer("embedding_length"), base.integer("block_count")
    except Refused:
        return
    name = next(iter(layers))
    length = gguf.tensors[name].elements
    if width is not None and length != width:
        yield _hit(f"needs directions of {width} numbers, they have {length}", _at(name))
    beyond = [name for name, layer in layers.items() if blocks is not None and layer >= blocks]
    if beyond:
        yield _hit(
            f"the model has {blocks} layers, {listed(beyond)} have no effect",
            _at(beyond[0]),
            level=Severity.WARNING,
        )


def _at(name: str) -> Where:
    return Where(tensor=name)


def _hit(message: str, where: Where, level: Severity = Severity.ERROR) -> Hit:
    return Hit(message=message, where=where, level=level, repair=AGAIN)


RULE = Rule(
    id="PKG047",
    name="control-vector-unusable",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("controlvector",)),
    authority="llama.cpp b11434 common/common.cpp common_control_vector_load_one, "
    "src/llama-adapter.cpp llama_adapter_cvec::apply",
)

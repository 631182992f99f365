"""What llama.cpp's architectures keep, and what the converter writes for them.

One module per family, found by listing and imported when a name is looked up, the likely
ones first; modules with an underscore are what they share.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import pkgutil
from collections.abc import Callable, Iterator, Mapping

from gguf_audit.arch import _config, _effective, _keys, _model, _rope_tensors
from gguf_audit.arch._model import LlamaModel, Trait
from gguf_audit.arch._reads import Kind, kind, reads, rotates
from gguf_audit.arch.architecture import Architecture, Converter, Saving
from gguf_audit.checkpoint import Json
from gguf_audit.errors import MalformedError, UnknownArchitectureError, UnsupportedError
from gguf_audit.fields import Fields, Value
from gguf_audit.gguf import Scalar
from gguf_audit.layout import CacheLayout
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.text_model import class_of
from gguf_audit.where import Where

__all__ = [
    "Architecture",
    "Converter",
    "Kind",
    "LlamaModel",
    "Saving",
    "Trait",
    "architectures",
    "by_name",
    "converter_of",
    "effective",
    "expected_fields",
    "ideal_layout",
    "implied_layout",
    "kind",
    "llama_model",
    "reads",
    "rope_factors",
    "rope_tensors",
    "rotates",
]


@functools.cache
def _families() -> tuple[str, ...]:
    """Return the names of the modules that declare architectures."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(
        sorted(n for n in names if not n.startswith("_") and n not in ("architecture", "tensors"))
    )


@functools.cache
def _declared(family: str) -> tuple[Architecture, ...]:
    module = importlib.import_module(f"{__name__}.{family}")
    found: tuple[Architecture, ...] = module.ARCHITECTURES
    return found


def _in_order(name: str) -> Iterator[Architecture]:
    """Yield every architecture, those of modules that share the start of a name first."""
    plain = _plain(name)
    for family in sorted(_families(), key=lambda family: -_shared(plain, _plain(family))):
        yield from _declared(family)


def _shared(name: str, other: str) -> int:
    """Return with how many same characters two names begin."""
    same = itertools.takewhile(bool, (a == b for a, b in zip(name, other, strict=False)))
    return sum(same)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def architectures() -> tuple[Architecture, ...]:
    """Return every architecture that we know, by module."""
    return tuple(found for family in _families() for found in _declared(family))


@functools.cache
def by_name(name: str) -> Architecture | None:
    """Return the architecture of a ``general.architecture``, ``None`` for an unknown one."""
    return next((found for found in _in_order(name) if name in found.names), None)


@functools.cache
def _by_class(name: str) -> Converter | None:
    converters = (converter for found in _in_order(name) for converter in found.converters)
    return next((converter for converter in converters if name in converter.takes), None)


def llama_model(fields: Fields) -> LlamaModel:
    """Return what llama.cpp (build 11434) makes of a file's metadata.

    Raises Refused where it refuses the metadata or aborts on it, LimitError for more
    blocks than we look at and UnknownArchitectureError for an architecture we don't know.
    """
    architecture = by_name(fields.architecture)
    if architecture is None:
        raise UnknownArchitectureError(
            f"architecture {_shown(fields.architecture)} is none that we know",
            where=Where(key="general.architecture"),
        )
    return architecture.implied(_model.read_hyper(fields))


def implied_layout(fields: Fields) -> CacheLayout:
    """Return what llama.cpp keeps for a file; raises as ``llama_model`` does."""
    return llama_model(fields).layout


def effective(fields: Fields, name: str) -> Value[Scalar | tuple[Scalar, ...]] | None:
    """Return the value that llama.cpp uses for a key named without its prefix.

    ``None`` where the key is absent and we know no default. Types aren't checked.
    """
    architecture = by_name(fields.architecture)
    if architecture is None:
        return _effective.effective(fields, name, defaults=_effective.NONE)
    return _effective.effective(fields, name, defaults=architecture.defaults)


def converter_of(config: Mapping[str, Json]) -> Converter:
    """Return who converts a ``config.json``; UnsupportedError where nobody we know does."""
    name = class_of(config)
    if name is None:
        where = Where(file="config.json", key="architectures")
        raise MalformedError("architectures in config.json names no class", where=where)
    converter = _by_class(name)
    if converter is None:
        where = Where(file="config.json", key="architectures")
        raise UnsupportedError(f"conversion of {_shown(name)} isn't covered", where=where)
    return converter


def expected_fields(
    config: Mapping[str, Json],
    load_pooling: Callable[[], int | Absent | None] = lambda: Absent("not asked"),
) -> Fields:
    """Return the metadata that the official converter writes for a ``config.json``.

    All of it but ``general.*`` and ``tokenizer.*``; floats are what 32 bits hold.
    ``load_pooling`` is asked where the converter looks for another file (AuditError).
    Raises UnsupportedError for a class that isn't covered and MalformedError, naming
    the key, for a value that can't be used.
    """
    converter = converter_of(config)
    checked = _config.Config(config, defaults=converter.defaults)
    writes = converter.writes if isinstance(converter.writes, str) else converter.writes(checked)
    return _keys.to_fields(writes, _with_pooling(config, converter.keys(checked), load_pooling))


def _with_pooling(
    config: Mapping[str, Json], keys: _keys.Keys, load_pooling: Callable[[], int | Absent | None]
) -> _keys.Keys:
    if keys.get(_keys.POOLING_KEY) is not _keys.POOLING:
        return keys
    pooling = load_pooling()
    if isinstance(pooling, Absent):
        return keys
    ranks = (class_of(config) or "").endswith("ForSequenceClassification")
    return {**keys, _keys.POOLING_KEY: _keys.Either(pooling, (_keys.RANK,) if ranks else ())}


def rope_tensors(architecture: str, config: Mapping[str, Json]) -> Mapping[str, str]:
    """Return the RoPE tensors of a right conversion -> the scaling they stand for.

    Raises as ``expected_fields`` does.
    """
    defaults = converter_of(config).defaults
    return _rope_tensors.rope_tensors(architecture, _config.Config(config, defaults=defaults))


def rope_factors(
    architecture: str, config: Mapping[str, Json], name: str, count: int
) -> tuple[float, ...] | None:
    """Return the values of one of these, of ``count`` elements; ``None`` where unstated.

    Raises as ``expected_fields`` does.
    """
    checked = _config.Config(config, defaults=converter_of(config).defaults)
    return _rope_tensors.rope_factors(architecture, checked, name, count)


def ideal_layout(config: Mapping[str, Json]) -> CacheLayout:
    """Return what the architecture of a ``config.json`` needs, whatever runs it.

    Raises as ``expected_fields`` does.
    """
    converter = converter_of(config)
    return converter.ideal(_config.Config(config, defaults=converter.defaults))


def _shown(name: str) -> str:
    return repr(name[: LIMITS.shown_characters])

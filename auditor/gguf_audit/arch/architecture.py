"""What an architecture is to us: how it is read, written and meant to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct, field

from gguf_audit.arch._config import Config
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.checkpoint import Json
from gguf_audit.errors import UnsupportedError
from gguf_audit.fields import Fields
from gguf_audit.layout import CacheLayout
from gguf_audit.where import Where

__all__ = ["Architecture", "Converter", "Saving", "unconverted"]

#: What a model keeps less of than full attention would: a window bounds it, a latent
#: packs it, a state replaces it.
Saving = Literal["window", "latent", "state"]


class Converter(Struct, frozen=True, kw_only=True):
    """One class of the official converter: what it takes and what it writes."""

    #: Names in ``architectures`` of a ``config.json``.
    takes: tuple[str, ...]
    #: ``general.architecture`` of what it writes.
    writes: str | Callable[[Config], str]
    #: Hugging Face ``model_type`` -> what its configuration class fills in.
    defaults: Mapping[str, Mapping[str, Json]] = field(
        default_factory=dict[str, Mapping[str, Json]]
    )
    #: Every key it writes but ``general.*`` and ``tokenizer.*``, without prefix.
    keys: Callable[[Config], Keys]
    #: What the architecture itself needs.
    ideal: Callable[[Config], CacheLayout]


def unconverted(
    *takes: str,
    ideal: Callable[[Config], CacheLayout],
    defaults: Mapping[str, Mapping[str, Json]] | None = None,
) -> Converter:
    """Return classes that the official converter doesn't take, though we know their need."""

    def refuse(config: Config) -> str:
        del config
        where = Where(file="config.json", key="architectures")
        raise UnsupportedError(f"llama.cpp's converter doesn't take {takes[0]}", where=where)

    def nothing(config: Config) -> Keys:
        del config
        return {}

    return Converter(takes=takes, writes=refuse, defaults=defaults or {}, keys=nothing, ideal=ideal)


class Architecture(Struct, frozen=True, kw_only=True):
    """One family of llama.cpp architectures."""

    #: Names in ``general.architecture``.
    names: tuple[str, ...]
    #: What llama.cpp keeps for this metadata.
    implied: Callable[[Hyper], LlamaModel]
    #: Empty where the converter writes this architecture from nothing we cover.
    converters: tuple[Converter, ...] = ()
    #: Runtime defaults of keys that differ from those of every other architecture.
    defaults: Mapping[str, int | float | str] = field(
        default_factory=dict[str, "int | float | str"]
    )
    #: What every known model of it saves: worth a warning where a file doesn't, even
    #: without a reference.
    saves: frozenset[Saving] = frozenset()
    #: Block counts of the known models that save nothing all the same.
    spared: frozenset[int] = frozenset()
    #: Sizes compared with what llama.cpp itself allocates.
    verified: bool = True

    def savings(self, fields: Fields) -> frozenset[Saving]:
        """Return what a model of this many blocks is known to save."""
        blocks = fields.find("block_count")
        if blocks is not None and type(blocks.value) is int and blocks.value in self.spared:
            return frozenset()
        return self.saves

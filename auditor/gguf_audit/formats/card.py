"""Reference cards: what an audit needs of a checkpoint, in one small JSON file.

A card is ``{"card": 1, "id": ..., ...}``; ``cards/schema.json`` says what else it may
hold. A part that it doesn't hold is Absent, so a card can't claim what it doesn't know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeGuard

from gguf_audit.checkpoint import Checkpoint, Json, StoredTensor, Tokenizer
from gguf_audit.errors import MalformedError, UnsupportedError
from gguf_audit.formats._json import parse_object
from gguf_audit.formats.tokenizer import from_config
from gguf_audit.parts import Absent
from gguf_audit.where import Where

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["card_of", "find_card", "is_card", "list_cards", "read_card"]

VERSION = 1
_SCHEMA = "schema.json"


def is_card(document: Mapping[str, Json]) -> bool:
    """Tell a reference card from a ``config.json``."""
    return "card" in document


def list_cards() -> tuple[str, ...]:
    """Return the ids of the built-in cards, sorted; no card is opened."""
    return tuple(sorted(_id_of(file) for file in _files()))


def find_card(id: str) -> Checkpoint | None:  # noqa: A002 - what a Hub id is called everywhere
    """Return the built-in card of a Hub id or one of its aliases, whatever its case."""
    wanted = id.lower()
    for file in _files():
        if _id_of(file).lower() == wanted:
            return read_card(_document(file), name=file.name)
    for file in _files():
        document = _document(file)
        aliases = document.get("aliases", [])
        if isinstance(aliases, list) and wanted in (str(alias).lower() for alias in aliases):
            return read_card(document, name=file.name)
    return None


def read_card(document: Mapping[str, Json], *, name: str) -> Checkpoint:
    """Return the checkpoint that a card describes; ``name`` is its file's, for messages.

    Raises UnsupportedError for a card of another version and MalformedError for one
    that breaks ``cards/schema.json``.
    """
    reader = _Reader(document, name)
    version = document.get("card")
    if type(version) is not int or version != VERSION:
        raise UnsupportedError(
            f"{name} is a reference card of version {version!r:.20}, this release reads {VERSION}",
            where=Where(file=name, key="card"),
        )
    identity = reader.string("id")
    if not identity:
        raise reader.wrong("id", "a Hub id")
    unknown = Absent(f"the reference card of {identity} doesn't hold it")
    config = reader.members("config") if "config" in document else unknown
    held = reader.tokenizer() if "tokenizer" in document else None
    tensors = reader.tensors() if "tensors" in document else unknown
    return Checkpoint(
        id=identity,
        revision=reader.string("revision") or None,
        origin="card",
        published=reader.boolean("published"),
        note=reader.string("note"),
        config=config,
        generation_config=(
            reader.members("generation_config") if "generation_config" in document else unknown
        ),
        tokenizer_config=(
            reader.members("tokenizer_config") if "tokenizer_config" in document else unknown
        ),
        chat_templates=reader.strings("chat_templates")
        if "chat_templates" in document
        else unknown,
        load_tensors=lambda: tensors,
        load_tokenizer=lambda: from_config(config) if held is None else held,
    )


def card_of(checkpoint: Checkpoint) -> dict[str, Json]:
    """Return the card that describes a checkpoint: ``read_card`` gives it back.

    Tensors and tokenizer are read (AuditError). What is Absent is left out.
    """
    card: dict[str, Json] = {
        "card": VERSION,
        "id": checkpoint.id,
        "revision": checkpoint.revision,
        "published": checkpoint.published,
        "note": checkpoint.note,
    }
    for part in ("config", "generation_config", "tokenizer_config", "chat_templates"):
        value: Mapping[str, Json] | Mapping[str, str] | Absent = getattr(checkpoint, part)
        if not isinstance(value, Absent):
            card[part] = dict(value)
    tokenizer = checkpoint.tokenizer
    if not isinstance(tokenizer, Absent):
        card["tokenizer"] = {
            "special_ids": dict(tokenizer.special_ids),
            "unsure_ids": [*sorted(tokenizer.unsure_ids)],
            "complete": tokenizer.complete,
            "size": tokenizer.size,
        }
    tensors = checkpoint.tensors
    if not isinstance(tensors, Absent):
        card["tensors"] = {name: [tensor.dtype, *tensor.shape] for name, tensor in tensors.items()}
    return card


class _Reader:
    """Typed access to the members of a card."""

    def __init__(self, document: Mapping[str, Json], name: str) -> None:
        self._document = document
        self._name = name

    def wrong(self, key: str, wanted: str) -> MalformedError:
        return MalformedError(
            f"{self._name}: {key} of a reference card has to be {wanted}",
            where=Where(file=self._name, key=key),
        )

    def value(self, key: str) -> Json:
        return self._document.get(key)

    def string(self, key: str) -> str:
        value = self._document.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "a string")
        return value or ""

    def boolean(self, key: str) -> bool:
        value = self._document.get(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def members(self, key: str) -> dict[str, Json]:
        value = self._document.get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return value

    def strings(self, key: str) -> dict[str, str]:
        members = self.members(key)
        found = {name: value for name, value in members.items() if isinstance(value, str)}
        if len(found) < len(members):
            raise self.wrong(key, "an object of strings")
        return found

    def tokenizer(self) -> Tokenizer:
        within = _Reader(self.members("tokenizer"), self._name)
        members = within.members("special_ids")
        ids = {name: id_ for name, id_ in members.items() if _is_count(id_)}
        if len(ids) < len(members):
            raise self.wrong("tokenizer.special_ids", "an object of token ids")
        size = within.value("size")
        if size is not None and not _is_count(size):
            raise self.wrong("tokenizer.size", "a number of tokens")
        unsure = within.value("unsure_ids")
        if unsure is not None and not isinstance(unsure, list):
            raise self.wrong("tokenizer.unsure_ids", "a list of names")
        names = frozenset(name for name in unsure or () if isinstance(name, str))
        return Tokenizer(
            special_ids=ids, unsure_ids=names, complete=within.boolean("complete"), size=size
        )

    def tensors(self) -> dict[str, StoredTensor]:
        found: dict[str, StoredTensor] = {}
        for name, entry in self.members("tensors").items():
            dtype, *dimensions = entry if isinstance(entry, list) and entry else [None]
            shape = tuple(dimension for dimension in dimensions if _is_count(dimension))
            if not isinstance(dtype, str) or len(shape) < len(dimensions):
                raise self.wrong("tensors", "an object of [dtype, dimensions...]")
            found[name] = StoredTensor(dtype=dtype, shape=shape)
        return found


def _is_count(value: Json) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _files() -> Iterator[Traversable]:
    # Here, because it brings tempfile and shutil along: 8 ms of every start.
    from importlib import resources

    folder = resources.files("gguf_audit") / "cards"
    for file in folder.iterdir():
        if file.name.endswith(".json") and file.name != _SCHEMA:
            yield file


def _id_of(file: Traversable) -> str:
    """Return ``google/gemma-3-270m`` for ``google--gemma-3-270m.json``."""
    return file.name.removesuffix(".json").replace("--", "/", 1)


def _document(file: Traversable) -> dict[str, Json]:
    return parse_object(file.read_bytes(), name=file.name)

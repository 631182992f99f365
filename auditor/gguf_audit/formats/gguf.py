"""GGUF files and split sets, read as far as their headers go.

No tensor data is read but what ``Gguf.values`` and ``Gguf.non_finite`` are asked for, and
arrays stay on disk until their items are asked for.
What is wrong with a model is left to rules: a reader that refuses one defect would
hide the others. It refuses what it can't walk over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from gguf_audit.errors import LimitError, MalformedError, SourceError, UnlistedError
from gguf_audit.formats._header import MAGIC, read_header
from gguf_audit.gguf import Field, FileFacts, Gguf, Tensor, ValueType
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources import ByteSource, FileSource, LocalTree, Tree
from gguf_audit.where import Where

__all__ = ["MAGIC", "ShardName", "open_gguf", "read_gguf", "read_gguf_set", "shard_name"]

#: Keys of a split set (``llama_split_path`` and src/llama-model-loader.cpp).
SPLIT_COUNT = "split.count"
SPLIT_NUMBER = "split.no"
SPLIT_TENSORS = "split.tensors.count"

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>[0-9]{5,6})-of-(?P<count>[0-9]{5,6})\.gguf")


class ShardName(Struct, frozen=True, kw_only=True):
    """What the name of a shard says: ``model-00002-of-00003.gguf``."""

    stem: str
    #: From 1 on, as in the name; ``split.no`` counts from 0.
    number: int
    count: int

    def sibling(self, number: int) -> str:
        """Return the name of another shard of the same set."""
        return f"{self.stem}-{number:05d}-of-{self.count:05d}.gguf"


def shard_name(name: str) -> ShardName | None:
    """Return what the name of a shard says, ``None`` where it isn't one's."""
    found = _SHARD.fullmatch(name)
    if found is None:
        return None
    return ShardName(stem=found["stem"], number=int(found["number"]), count=int(found["count"]))


def open_gguf(path: str | os.PathLike[str], *, limits: Limits = LIMITS) -> Gguf:
    """Read the model in a file, or in the set that a shard belongs to.

    Raises SourceError where a file can't be had, MalformedError where it can't be
    walked over, LimitError where that would cost too much and UnsupportedError for
    files of other kinds: always an AuditError with its ``where``.
    """
    source = FileSource(path)
    facts = read_header(source, limits=limits)
    if _split_count(facts) < 2:
        return _model(source.name, (facts,))
    given = Path(path)
    # The user named the file, and the names of its siblings follow from that one.
    tree = LocalTree(given.parent, follow_links=True)
    found = read_gguf_set(tree, given.name, limits=limits)
    return replace(found, name=source.name)


def read_gguf(source: ByteSource, *, limits: Limits = LIMITS) -> Gguf:
    """Read one file, whether or not it is a shard; raises as ``open_gguf`` does."""
    return _model(source.name, (read_header(source, limits=limits),))


def read_gguf_set(tree: Tree, name: str, *, limits: Limits = LIMITS) -> Gguf:
    """Read the model that a file belongs to, by the name of any of its shards.

    A file that claims no siblings is a model of its own. Raises as ``open_gguf``
    does, and names the shard that is missing or disagrees.
    """
    facts = read_header(tree.open(name), limits=limits)
    count = _split_count(facts)
    if count < 2:
        return _model(name, (facts,))
    said = _agreed_name(name, facts, count, limits)
    names = [said.sibling(number) for number in range(1, count + 1)]
    _all_there(tree, names, limits)
    files: list[FileFacts] = []
    spent = _Spent(limits)
    for index, shard in enumerate(names):
        read = facts if shard == name else read_header(tree.open(shard), limits=limits)
        _check_shard(read, index, count)
        _check_order(read, files)
        spent.on(read)
        files.append(_numbered(read, index))
    _check_tensors(files)
    return _model(name, files)


class _Spent:
    """What the shards of a set have cost so far: together they are one model, not many."""

    def __init__(self, limits: Limits) -> None:
        self._limits = (
            ("keys", limits.metadata_keys),
            ("tensors", limits.tensors),
            ("bytes of headers", limits.header_bytes),
        )
        self._sums = [0, 0, 0]

    def on(self, shard: FileFacts) -> None:
        """Add a shard; LimitError where that is too much."""
        costs = (len(shard.fields), len(shard.tensors), shard.header_bytes)
        self._sums = [spent + cost for spent, cost in zip(self._sums, costs, strict=True)]
        for spent, (what, limit) in zip(self._sums, self._limits, strict=True):
            if spent > limit:
                raise LimitError(
                    f"with {shard.name} the shards have {spent} {what},"
                    f" more than {limit} are not read",
                    where=Where(file=shard.name),
                )


def _model(name: str, files: Sequence[FileFacts]) -> Gguf:
    fields: dict[str, Field] = {}
    tensors: dict[str, Tensor] = {}
    for file in files:
        for field in file.fields:
            fields.setdefault(field.key, field)
        for tensor in file.tensors:
            tensors.setdefault(tensor.name, tensor)
    return Gguf(
        name=name,
        files=tuple(files),
        fields=MappingProxyType(fields),
        tensors=MappingProxyType(tensors),
    )


def _numbered(facts: FileFacts, index: int) -> FileFacts:
    """Return the facts of a shard with its place in the set on every tensor."""
    if not index:
        return facts
    tensors = tuple([replace(tensor, file=index) for tensor in facts.tensors])
    return replace(facts, tensors=tensors)


def _integer(facts: FileFacts, key: str, type_: ValueType) -> int | None:
    """Return an integer of exactly this type, ``None`` where the key is absent.

    llama.cpp refuses any other type, or aborts (llama_model_loader, ``get_key`` and
    ``gguf_get_val_u16``); taken for absent it would make a single file of a set.
    """
    found = next((field for field in facts.fields if field.key == key), None)
    if found is None:
        return None
    if found.type is not type_ or not isinstance(found.value, int):
        has = "of no type" if found.type is None else found.type.name.lower()
        raise MalformedError(
            f"{key} of {facts.name} is {has}, expected {type_.name.lower()}",
            where=Where(file=facts.name, key=key, offset=found.offset),
        )
    return found.value


def _split_count(facts: FileFacts) -> int:
    # llama.cpp goes by the key alone; without it a file stands for itself, whatever
    # its name says (llama_model_loader, "n_split").
    return _integer(facts, SPLIT_COUNT, ValueType.UINT16) or 0


def _agreed_name(name: str, facts: FileFacts, count: int, limits: Limits) -> ShardName:
    where = Where(file=name, key=SPLIT_COUNT)
    if count > limits.shards:
        raise LimitError(
            f"the set has {count} shards, more than the {limits.shards} that we read", where=where
        )
    said = shard_name(name)
    if said is None:
        number = _integer(facts, SPLIT_NUMBER, ValueType.UINT16)
        which = "one" if number is None else f"number {number + 1}"
        raise MalformedError(
            f"this is shard {which} of {count}, but its name doesn't end in -00001-of-{count:05d}.gguf "
            "or the like: the other shards can't be found",
            where=where,
        )
    if said.count != count:
        raise MalformedError(
            f"the shard's name says that there are {said.count} shards, split.count says {count}",
            where=where,
        )
    if name != said.sibling(said.number) or not 1 <= said.number <= count:
        raise MalformedError(f"there is no shard {said.number} of {count}", where=where)
    return said


def _all_there(tree: Tree, names: Sequence[str], limits: Limits) -> None:
    try:
        present = frozenset(tree.names(names[0].rpartition("/")[0]))
    except UnlistedError:
        return  # The first that isn't there is told when it is opened.
    missing = [name for name in names if name not in present]
    if not missing:
        return
    shown = ", ".join(missing[: limits.shown_items])
    more = len(missing) - limits.shown_items
    rest = f" and {more} more" if more > 0 else ""
    raise SourceError(
        f"of {len(names)} shards {len(missing)} missing: {shown}{rest}",
        where=Where(file=missing[0]),
    )


def _check_shard(facts: FileFacts, index: int, count: int) -> None:
    for key, wanted in ((SPLIT_COUNT, count), (SPLIT_NUMBER, index)):
        found = _integer(facts, key, ValueType.UINT16)
        if found != wanted:
            has = "no such number" if found is None else str(found)
            raise MalformedError(
                f"shard {facts.name} has {has} in {key}, expected {wanted}",
                where=Where(file=facts.name, key=key),
            )


def _check_order(facts: FileFacts, before: Sequence[FileFacts]) -> None:
    # gguf.cpp reads only the order of its host, so no host reads all of such a set.
    if before and facts.byte_order != before[0].byte_order:
        raise MalformedError(
            f"shard {facts.name} is {facts.byte_order}-endian, {before[0].name} is "
            f"{before[0].byte_order}-endian: nothing loads both",
            where=Where(file=facts.name),
        )


def _check_tensors(files: Sequence[FileFacts]) -> None:
    wanted = _integer(files[0], SPLIT_TENSORS, ValueType.INT32)
    found = sum(len(file.tensors) for file in files)
    if wanted is not None and wanted != found:
        raise MalformedError(
            f"the {len(files)} shards hold {found} tensors, {SPLIT_TENSORS} of {files[0].name} "
            f"says {wanted}",
            where=Where(file=files[0].name, key=SPLIT_TENSORS),
        )

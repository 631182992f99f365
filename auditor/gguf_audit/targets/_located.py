"""One file of a target: what the report calls it, and how it is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gguf_audit.errors import AuditError, LimitError, SourceError
from gguf_audit.formats.gguf import open_gguf, read_gguf_set, shard_name
from gguf_audit.gguf import Card, Gguf
from gguf_audit.limits import LIMITS
from gguf_audit.sources import LocalTree, Tree
from gguf_audit.where import Where

if TYPE_CHECKING:
    from gguf_audit.formats.readme import BaseModel
    from gguf_audit.sources._stream import Traffic

__all__ = ["Located", "Source", "SourceOrigin", "few_enough"]

T = TypeVar("T")

SourceOrigin = Literal["hub", "cache", "url", "fsspec", "ollama", "lmstudio"]


class Source(Struct, frozen=True, kw_only=True):
    """Where the files of a target come from, if it isn't simply a path."""

    #: Repository, address or name in a store.
    id: str
    #: Commit of a repository.
    revision: str | None = None
    origin: SourceOrigin
    #: What to tell the user about it, "" for nothing.
    note: str = ""


def few_enough(found: Sequence[T], where: str) -> Sequence[T]:
    """Return the models that a listing names; LimitError where nobody could audit them all."""
    if len(found) > LIMITS.listed_models:
        raise LimitError(
            f"{where} lists {len(found)} models, more than {LIMITS.listed_models} are not"
            " audited: name a file or a folder of it"
        )
    return found


class Located(Struct, frozen=True):
    """One file of a target, or the reason why there is none."""

    #: What the report calls it.
    name: str
    error: AuditError | None = None
    #: Found below a folder, where a shard that its set has covered is no other model.
    found: bool = False
    #: The folder or the repository of which every GGUF file was found; "" where there may
    #: be others beside it.
    listed: str = ""
    #: Where it is on this machine, if ``name`` isn't that.
    path: str | None = None
    #: Where else it is, and its name there.
    tree: Tree | None = None
    file: str = ""
    source: Source | None = None
    #: Counts what is spent on reading it.
    traffic: Traffic | None = None

    def open(self) -> Gguf:
        """Read the model that it belongs to; raises as ``open_gguf`` does."""
        if self.error is not None:
            raise self.error
        if self.tree is not None:
            gguf = read_gguf_set(self.tree, self.file)
        else:
            gguf = open_gguf(self.path or self.name)
        return gguf if gguf.name == self.name else replace(gguf, name=self.name)

    def local_path(self) -> str | None:
        """Return where it is on this machine, ``None`` if it isn't."""
        return None if self.tree is not None else self.path or self.name

    def sha256_of(self, file: str) -> str:
        """Return the sha256 of a whole file of its set, by the name that was read.

        A file of this machine is read for that; of one on the Hub it is what the Hub
        lists. Raises SourceError where it can't be had without fetching the file.
        """
        path = self.local_path()
        if path is not None:
            from gguf_audit.sources.digest import file_sha256

            return file_sha256(Path(path).with_name(Path(file).name))
        from gguf_audit.sources.hub import HubTree

        listed = self.tree.sha256(file) if isinstance(self.tree, HubTree) else None
        if listed is None:
            raise SourceError(
                f"the sha256 of {file} isn't known: it would take the whole file",
                where=Where(file=file),
            )
        return listed

    def base_model(self) -> BaseModel | None:
        """Return what the README.md beside it says of its base model."""
        from gguf_audit.formats.readme import read_base_model  # only for --against auto

        try:
            tree = self.tree or LocalTree(Path(self.path or self.name).parent)
        except AuditError:
            return None
        return read_base_model(tree)

    def card(self) -> Card | None:
        """Return what the README.md beside it says of the models there."""
        from gguf_audit.formats.readme import read_card

        try:
            return read_card(self.tree or LocalTree(Path(self.path or self.name).parent))
        except AuditError:
            return None

    def covers(self, files: Sequence[str]) -> Iterator[str]:
        """Yield what ``locate`` calls the files of its set.

        ``files`` are the names that were read. Of a set that can't be opened there are
        none: it is reported once, by the first shard that is there.
        """
        own = self.file if self.tree is not None else Path(self.path or self.name).name
        if not files:
            shard = shard_name(own.rpartition("/")[2])
            if shard is not None and shard.count <= LIMITS.shards:
                files = [shard.sibling(number) for number in range(1, shard.count + 1)]
        folder = self.name[: len(self.name) - len(own.rpartition("/")[2])]
        for name in files:
            yield folder + Path(name).name

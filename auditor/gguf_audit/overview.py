"""What ``show`` tells of a model or a reference, in the shape of its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import asdict

from gguf_audit.json_values import as_json, without_surrogates
from gguf_audit.layout import CacheLayout
from gguf_audit.verdict import FileSummary, Problem, ReferenceFacts, SubjectKind

__all__ = ["Entry", "EntryOrigin", "Group", "KeptAt", "KeptCache", "Overview", "Shown"]

#: ``key``: the file has it, or a right conversion writes it. ``runtime default``: llama.cpp
#: takes it because the key is absent. ``shape``: a tensor's. ``header``: the file's own
#: structure. ``reference``: the checkpoint says so beside its hyper-parameters.
EntryOrigin = Literal["key", "runtime default", "shape", "header", "reference"]


class Entry(Struct, frozen=True, kw_only=True):
    """One effective value and where it comes from."""

    #: Full metadata key, a tensor's name, or what is counted.
    name: str
    value: object
    origin: EntryOrigin
    #: What the value alone doesn't say: a token's text, a type's name; "" for nothing.
    note: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return the value in the shape of the JSON document."""
        return {
            "name": self.name,
            "value": as_json(self.value),
            "origin": self.origin,
            "note": as_json(self.note),
        }


class Group(Struct, frozen=True, kw_only=True):
    """Values of one kind, in the order in which they are shown."""

    name: str
    entries: tuple[Entry, ...]
    #: Entries left out because nobody would read so many.
    omitted: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the group in the shape of the JSON document."""
        return {
            "name": self.name,
            "values": [entry.to_dict() for entry in self.entries],
            "omitted": self.omitted,
        }


class KeptAt(Struct, frozen=True, kw_only=True):
    """Bytes of cache at one context length: llama.cpp, one sequence, f16."""

    tokens: int
    implied: int
    ideal: int | None
    #: Every layer keeps every token, its attention heads unpacked.
    full_attention: int

    def to_dict(self) -> dict[str, object]:
        """Return the row in the shape of the JSON document."""
        return asdict(self)


class KeptCache(Struct, frozen=True, kw_only=True):
    """What llama.cpp keeps for a file, or for a right conversion of a reference."""

    #: ``None`` where only the architecture's need is known.
    implied: CacheLayout | None
    #: What the architecture itself needs; a file alone doesn't say.
    ideal: CacheLayout | None
    bytes: tuple[KeptAt, ...]

    def to_dict(self) -> dict[str, object]:
        """Return layouts and bytes in the shape of the JSON document."""
        return {
            "implied": None if self.implied is None else self.implied.to_dict(),
            "ideal": None if self.ideal is None else self.ideal.to_dict(),
            "bytes": [row.to_dict() for row in self.bytes],
        }


class Overview(Struct, frozen=True, kw_only=True):
    """What is known of one model, or of one reference."""

    target: str
    kind: SubjectKind | Literal["reference"]
    files: tuple[FileSummary, ...] = ()
    reference: ReferenceFacts | None = None
    architecture: str | None = None
    groups: tuple[Group, ...] = ()
    cache: KeptCache | None = None
    #: What can't be told, and why: one sentence each.
    unknown: tuple[str, ...] = ()
    #: Why something couldn't be read.
    errors: tuple[Problem, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the overview in the shape of the JSON document."""
        document: dict[str, object] = {
            "target": self.target,
            "kind": self.kind,
            "files": [file.to_dict() for file in self.files],
            "reference": None if self.reference is None else self.reference.to_dict(),
            "architecture": self.architecture,
            "groups": [group.to_dict() for group in self.groups],
            "cache": None if self.cache is None else self.cache.to_dict(),
            "unknown": [as_json(reason) for reason in self.unknown],
            "errors": [error.to_dict() for error in self.errors],
        }
        return cast("dict[str, object]", without_surrogates(document))


class Shown(Struct, frozen=True, kw_only=True):
    """Everything that one call of ``show`` was asked for."""

    #: Version of this tool.
    version: str
    #: Runtime -> the build whose behaviour is meant.
    runtimes: Mapping[str, str]
    subjects: tuple[Overview, ...]

    @property
    def exit_code(self) -> int:
        """3 where something couldn't be read, or nothing was there, else 0."""
        return 3 if not self.subjects or any(shown.errors for shown in self.subjects) else 0

    def to_dict(self) -> dict[str, object]:
        """Return the whole JSON document."""
        return {
            "version": 1,
            "tool": {"name": "gguf-audit", "version": self.version},
            "runtimes": dict(self.runtimes),
            "subjects": [subject.to_dict() for subject in self.subjects],
        }

"""A manifest of what was audited: which bytes a verdict was about.

    {"version": 1, "tool": {"name": "gguf-audit", "version": "..."},
     "files": [{"target": "...", "name": "...", "size_bytes": 1, "header_sha256": "...",
                "sha256": "..." | null, "status": "clean"}]}

``sha256`` is that of the whole file, null where nobody knows it without fetching the file.
A target that could not be read isn't in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from gguf_audit.checkpoint import Json
from gguf_audit.errors import MalformedError
from gguf_audit.formats._json import read_object
from gguf_audit.limits import LIMITS
from gguf_audit.sources import ByteSource
from gguf_audit.verdict import Report
from gguf_audit.where import Where

__all__ = ["Sum", "differences", "read_sums", "render", "sums_of"]


class Sum(Struct, frozen=True, kw_only=True):
    """One file that was audited."""

    #: The model that it belongs to, as the user named it.
    target: str
    name: str
    size_bytes: int
    header_sha256: str
    sha256: str | None
    #: What the audit said of the model then.
    status: str

    @property
    def file(self) -> str:
        """The name without the folder: what it is called wherever it goes."""
        return self.name.replace("\\", "/").rpartition("/")[2]


def sums_of(report: Report) -> tuple[Sum, ...]:
    """Return the files of a report, in its order."""
    return tuple(
        Sum(
            target=subject.target,
            name=file.name,
            size_bytes=file.size_bytes,
            header_sha256=file.header_sha256,
            sha256=file.sha256,
            status=subject.status.value,
        )
        for subject in report.subjects
        for file in subject.files
    )


def render(report: Report) -> str:
    """Return the manifest as it is written."""
    tool = {"name": "gguf-audit", "version": report.version}
    files = [asdict(each) for each in sums_of(report)]
    document = {"version": 1, "tool": tool, "files": files}
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def read_sums(source: ByteSource) -> tuple[Sum, ...]:
    """Read a manifest; an AuditError where that isn't what the file holds."""
    document = read_object(source, limit_bytes=LIMITS.index_bytes)
    files = document.get("files")
    if document.get("version") != 1 or not isinstance(files, list):
        raise _malformed(source, "it isn't of version 1")
    return tuple(_sum(source, each) for each in files)


def differences(pinned: Sequence[Sum], found: Sequence[Sum]) -> Iterator[str]:
    """Yield how files differ from those of a manifest, and which it doesn't know.

    A file is known by its name without the folder. Where both know the sha256 of the
    whole file that decides; else the header's and the size do.
    """
    known: dict[str, list[Sum]] = {}
    for each in pinned:
        known.setdefault(each.file, []).append(each)
    for file in found:
        entries = known.get(file.file)
        if entries is None:
            yield f"{file.name} is not in the manifest"
        elif not any(_same(entry, file) for entry in entries):
            entry = entries[0]
            yield (
                f"{file.name} is not the file in the manifest: {_said(file)}, there {_said(entry)}"
            )


def _same(pinned: Sum, found: Sum) -> bool:
    if (pinned.size_bytes, pinned.header_sha256) != (found.size_bytes, found.header_sha256):
        return False
    return pinned.sha256 == found.sha256 or None in (pinned.sha256, found.sha256)


def _said(file: Sum) -> str:
    whole = "" if file.sha256 is None else f", sha256 {file.sha256}"
    return f"{file.size_bytes} bytes, header {file.header_sha256}{whole}"


def _sum(source: ByteSource, value: Json) -> Sum:
    match value:
        case {
            "target": str(target),
            "name": str(name),
            "size_bytes": int(size),
            "header_sha256": str(header),
            "sha256": str() | None as sha256,
            "status": str(status),
        }:
            return Sum(
                target=target,
                name=name,
                size_bytes=size,
                header_sha256=header,
                sha256=sha256,
                status=status,
            )
        case _:
            raise _malformed(source, f"{str(value)[: LIMITS.shown_characters]} is no entry of one")


def _malformed(source: ByteSource, reason: str) -> MalformedError:
    where = Where(file=source.name)
    return MalformedError(f"{source.name} is no manifest of gguf-audit's: {reason}", where=where)

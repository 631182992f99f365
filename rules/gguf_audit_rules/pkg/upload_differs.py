"""The repository doesn't hold the files that it was to be made of.

## What it does
With `--matches FOLDER`, holds the GGUF files that a repository of the Hub lists against those
of a folder: each has to be there, of the same size and with the same sha256. So are other
large files that are in both. Nothing is downloaded.

## Why it matters
An upload that broke off, or that left out a shard, is found by whoever downloads it. A file
that only the Hub has is a left-over of an earlier upload, or somebody else's.

## Fix
Upload the file again, or delete what doesn't belong there.

## Authority
The sizes and the sha256 of large files that the Hub lists (`/api/models`, `siblings`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gguf_audit.evidence import Settings, UploadedFile, UploadSubject
from gguf_audit.rule import Advice, Hit, OnUpload, Outcome, Rule, Severity
from gguf_audit.where import Where


def check(subject: UploadSubject, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit for each file that isn't the same in both places."""
    del settings
    for file in subject.files:
        hit = _difference(file, subject)
        if hit is not None:
            yield hit


def _difference(file: UploadedFile, subject: UploadSubject) -> Hit | None:
    local, listed = file.local_bytes, file.size_bytes
    upload, name = _upload(file.name, subject), file.name
    if not file.is_listed:
        message = f"{name} is in {subject.folder} and not in {subject.repository}"
        return _sized(file, message, expected=local, repair=upload)
    if local is None:
        message = f"{name} is in {subject.repository} and not in {subject.folder}"
        return _sized(file, message, actual=listed, level=Severity.WARNING)
    if listed is not None and listed != local:
        message = f"{name} needs {local} bytes as in {subject.folder}, the Hub has {listed}"
        return _sized(file, message, expected=local, actual=listed, repair=upload)
    if file.sha256 is None:
        message = f"the Hub lists no sha256 of {name}: only its size can be compared"
        return _sized(file, message, expected=local, level=Severity.WARNING)
    if file.sha256 != file.local_sha256:
        return Hit(
            message=f"{name} needs sha256 {file.local_sha256} as in {subject.folder}, the Hub has"
            f" {file.sha256}",
            where=Where(file=name),
            expected=file.local_sha256,
            actual=file.sha256,
            level=Severity.ERROR,
            repair=upload,
        )
    return None


def _upload(name: str, subject: UploadSubject) -> Advice:
    """Return the command that uploads one file again, to where it was."""
    at = [] if subject.revision is None else ["--revision", subject.revision]
    path = f"{subject.folder.rstrip('/')}/{name}"
    return Advice(text=shlex.join(["hf", "upload", subject.repo, path, name, *at]))


def _sized(
    file: UploadedFile,
    message: str,
    *,
    expected: int | None = None,
    actual: int | None = None,
    level: Severity = Severity.ERROR,
    repair: Advice | None = None,
) -> Hit:
    return Hit(
        message=message,
        where=Where(file=file.name),
        expected=expected,
        actual=actual,
        unit="byte",
        level=level,
        repair=repair,
    )


RULE = Rule(
    id="PKG020",
    name="upload-differs",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnUpload(check),
    authority="the sizes and sha256 that the Hub lists",
)

"""Composes what ``show`` tells: a file's effective values, or a right conversion's.

A target is a GGUF file, any shard of a set, or a folder of models; everything else is
taken as a reference: a checkpoint folder, a config, a card, a Hub id.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import gguf_audit
from gguf_audit.engine import RUNTIMES
from gguf_audit.errors import AuditError, ReferenceUnavailableError
from gguf_audit.formats.gguf import MAGIC
from gguf_audit.overview import Overview, Shown
from gguf_audit.reference import References
from gguf_audit.showing._file import show_file
from gguf_audit.showing._reference import show_reference
from gguf_audit.sources import FileSource
from gguf_audit.sources.hub_ids import hub_id
from gguf_audit.targets import Targets, is_model
from gguf_audit.verdict import Problem

__all__ = ["show"]


def show(target: str) -> Shown:
    """Return what is known of a model, of every model in a folder, or of a reference.

    Never raises AuditError: what can't be read is said in the subject's ``errors``.
    """
    runtimes = {"llama.cpp": RUNTIMES["llama.cpp"]}
    return Shown(version=gguf_audit.__version__, runtimes=runtimes, subjects=_subjects(target))


def _subjects(target: str) -> tuple[Overview, ...]:
    try:
        is_model = _is_model(target)
    except AuditError as error:
        return (_unread(target, "other", error),)
    if not is_model:
        try:
            return (show_reference(References().open(target)),)
        except AuditError as error:
            return (_unread(target, "reference", _with_hint(target, error)),)
    return tuple(_models(target))


def _models(target: str) -> Iterator[Overview]:
    """Yield the model in a file, or each in a folder: a set once, not once per shard."""
    covered: set[str] = set()
    for located in Targets().locate(target):
        if located.name in covered:
            continue
        try:
            shown = show_file(located)
        except AuditError as error:
            shown = _unread(located.name, "other", error)
        covered.update(located.covers([file.name for file in shown.files]))
        yield shown


def _is_model(target: str) -> bool:
    """Tell what is to be read as GGUF from what is a reference; AuditError."""
    path = Path(target)
    if path.is_dir():
        # A checkpoint with conversions beside it is shown as what it was converted to.
        return not (path / "config.json").is_file() or any(path.glob("*.gguf"))
    if not path.exists():
        return target.endswith(".gguf") or is_model(target)
    source = FileSource(path)
    return source.size < len(MAGIC) or source.read(0, len(MAGIC)) == MAGIC or path.suffix == ".gguf"


def _with_hint(target: str, error: AuditError) -> AuditError:
    """Return the error with what a repository's name would have to be followed by."""
    if hub_id(target) is None:
        return error
    hint = (
        f"; by {target} alone show takes a checkpoint: of a model in a repository say which one,"
        f" {target}:FILE.gguf or {target}:Q4_K_M"
    )
    return ReferenceUnavailableError(error.message + hint, where=error.where)


def _unread(target: str, kind: Literal["reference", "other"], error: AuditError) -> Overview:
    return Overview(target=target, kind=kind, errors=(Problem.of(error, file=target),))

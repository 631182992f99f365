"""The library's front: what ``gguf_audit`` itself exports."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Literal

from gguf_audit import arch, catalogue, engine
from gguf_audit.checkpoint import Checkpoint, Json
from gguf_audit.errors import MalformedError, UnsupportedError
from gguf_audit.expectation import expected_fields
from gguf_audit.fields import Fields
from gguf_audit.formats.gguf import open_gguf
from gguf_audit.gguf import Gguf
from gguf_audit.layout import CacheLayout
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.reference import open_checkpoint
from gguf_audit.runtime import llama_cpp
from gguf_audit.runtime.llama_cpp import FlashAttention, Plan
from gguf_audit.verdict import Report
from gguf_audit.where import Where

__all__ = [
    "audit",
    "expected_layout",
    "ideal_layout",
    "implied_layout",
    "open_checkpoint",
    "open_gguf",
    "plan_llama_cpp",
]


def audit(
    targets: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    against: str | PathLike[str] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    lengths: tuple[int, ...] = (),
    weights: Literal["none"] = "none",
    probe: bool = False,
    jobs: int | None = 1,
) -> Report:
    """Audit what targets mean, each file by itself or against one reference.

    A target is what ``gguf-audit check`` takes: a path, a repository, an address.
    ``against`` is what ``open_checkpoint`` takes, or ``auto``: what each file names.
    ``select`` and ``ignore`` take rule codes, families or names; ``lengths`` the
    context lengths of the cache table, in tokens; ``probe`` asks the installed llama.cpp
    about every model; ``jobs`` is the number of processes, ``None`` for what suits. What can't be audited is in the report. Raises CatalogueError where
    the rules can't be loaded, ``UnknownRuleError`` for a code that no rule has, and
    UnsupportedError for weights, which no rule reads yet.
    """
    if weights != "none":
        raise UnsupportedError(f"weights={weights!r}: tensor values aren't looked at")
    several = [targets] if isinstance(targets, str | PathLike) else list(targets)
    mandate = Mandate(
        rules=catalogue.choose(catalogue.load(), select=select, ignore=ignore),
        against=None if against is None else fspath(against),
        lengths=lengths,
        probe=probe,
    )
    return engine.audit_targets([fspath(target) for target in several], mandate, jobs=jobs)


def implied_layout(gguf: Gguf) -> CacheLayout:
    """Return what llama.cpp keeps for a file's metadata.

    Raises Refused where it refuses or aborts, UnknownArchitectureError for an
    architecture that we don't know.
    """
    return arch.implied_layout(_fields(gguf))


def expected_layout(checkpoint: Checkpoint) -> CacheLayout:
    """Return what llama.cpp keeps for a right conversion of a checkpoint.

    Raises MalformedError for a config that is none, UnsupportedError for a class that
    the converter, or we, don't know.
    """
    return arch.implied_layout(_fields(checkpoint))


def ideal_layout(checkpoint: Checkpoint) -> CacheLayout:
    """Return what the architecture itself needs, whatever a runtime can do.

    Raises as ``expected_layout`` does.
    """
    return arch.ideal_layout(_config(checkpoint))


def plan_llama_cpp(
    subject: Gguf | Checkpoint,
    *,
    context: int,
    parallel: int = 1,
    batch: int = 2048,
    ubatch: int = 512,
    cache_type_k: str = "f16",
    cache_type_v: str = "f16",
    swa_full: bool = False,
    kv_unified: bool = False,
    flash_attn: FlashAttention = "auto",
) -> Plan:
    """Return what llama.cpp reserves for a file, or for a right conversion.

    ``context`` in tokens over all sequences, 0 for the training context. Defaults are
    those of the command-line tools. Raises Refused where llama.cpp refuses or aborts,
    else as ``implied_layout`` and ``expected_layout`` do.
    """
    return llama_cpp.plan(
        _fields(subject),
        context=context,
        parallel=parallel,
        batch=batch,
        ubatch=ubatch,
        cache_type_k=cache_type_k,
        cache_type_v=cache_type_v,
        swa_full=swa_full,
        kv_unified=kv_unified,
        flash_attn=flash_attn,
    )


def _fields(subject: Gguf | Checkpoint) -> Fields:
    if isinstance(subject, Checkpoint):
        return expected_fields(subject)
    if subject.architecture is None:
        where = Where(file=subject.name, key="general.architecture")
        raise MalformedError("general.architecture is absent", where=where)
    return Fields(subject.architecture, subject.fields)


def _config(checkpoint: Checkpoint) -> dict[str, Json]:
    if isinstance(checkpoint.config, Absent):
        raise MalformedError(f"{checkpoint.id}: {checkpoint.config.reason}")
    return dict(checkpoint.config)

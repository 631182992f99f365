"""Which files of a folder claim to be one model, and what each of them says.

Of every file only a summary is kept: scalars, and of an array or a long string its size
and hash. A folder of fifty quants with vocabularies of megabytes takes kilobytes.

    Qwen3-8B-Q4_K_M.gguf, Qwen3-8B-UD-Q2_K_XL.gguf, BF16/Qwen3-8B-BF16-00001-of-00002.gguf
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gguf_audit.errors import AuditError
from gguf_audit.evidence import (
    Digest,
    FolderSubject,
    PairSubject,
    ProjectorMember,
    SetMember,
    SetSubject,
    Settings,
    UploadSubject,
)
from gguf_audit.fields import Fields
from gguf_audit.finding import Finding, Skip, heard
from gguf_audit.formats.gguf import shard_name
from gguf_audit.gguf import Array, Field, Gguf, Scalar
from gguf_audit.naming import LABEL
from gguf_audit.repairing import fix_command
from gguf_audit.rule import Hit, OnFolder, OnPair, OnSet, OnUpload, Outcome, Rule, Severity
from gguf_audit.verdict import Problem, SubjectReport

__all__ = ["Compared", "audit_set", "home_of", "member_of", "pairs_of", "sets_of", "stem_of"]

#: Several files that are held against each other.
Compared = SetSubject | PairSubject | FolderSubject | UploadSubject

#: Longer strings are told apart by their hash.
_LONGEST = 256
#: Namespaces whose values two quants of one model have in common.
_SHARED = ("tokenizer.", "general.")


def member_of(
    gguf: Gguf, name: str, told: frozenset[str] = frozenset(), encoder: str = ""
) -> SetMember | None:
    """Return the summary of a model, ``None`` for one that names no architecture.

    ``told`` are the keys that its own audit has found to be wrong, ``encoder`` is what
    ``SetMember`` has. Arrays are read to be hashed, not unpacked. Raises AuditError.
    """
    architecture = gguf.architecture
    if architecture is None:
        return None
    namespaces = (f"{architecture}.", *_SHARED)
    stated = {
        key: _stated(field) for key, field in gguf.fields.items() if key.startswith(namespaces)
    }
    scalars = {
        key: field
        for key, field in gguf.fields.items()
        if key.startswith(namespaces[0]) and isinstance(field.value, Scalar)
    }
    return SetMember(
        name=name,
        architecture=architecture,
        byte_order=gguf.files[0].byte_order,
        values=stated,
        fields=Fields(architecture, scalars),
        told=told,
        encoder=encoder,
    )


def _stated(field: Field) -> Scalar | Digest:
    value = field.value
    if isinstance(value, Array):
        kind = value.item_type.name.lower()
        digest = hashlib.sha256()
        for part in value.stored():
            digest.update(part)
        return Digest(kind=kind, count=value.count, sha256=digest.hexdigest())
    if isinstance(value, str) and len(value) > _LONGEST:
        stored = value.encode("utf-8", "surrogateescape")
        sha256 = hashlib.sha256(stored).hexdigest()
        return Digest(kind="characters", count=len(value), sha256=sha256)
    return value if isinstance(value, Scalar) else str(value)


def stem_of(path: str) -> tuple[str, bool]:
    """Return a file's name without its quantization, and whether it had one."""
    # Not by pathlib, which takes a slash out of an address.
    _, name = os.path.split(path)
    shard = shard_name(name)
    stem = shard.stem if shard is not None else name.removesuffix(".gguf")
    whole = LABEL.sub("", stem)
    return whole.lower(), whole != stem


def sets_of(members: Sequence[SetMember]) -> Iterator[SetSubject]:
    """Yield every group of at least two files that claim to be one model.

    Names that end in a quantization claim by what stands before it; where there is none,
    ``general.name`` and the model's size do. Files in a folder that is named like a
    quantization stand beside it.
    """
    groups: dict[tuple[object, ...], list[SetMember]] = {}
    labelled = {
        (home_of(member.name), stem_of(member.name)[0]) for member in members if _named(member)
    }
    for member in members:
        home, (stem, _) = home_of(member.name), stem_of(member.name)
        claim: tuple[object, ...] | None
        claim = ("named", stem) if (home, stem) in labelled else _claimed(member)
        if claim is not None:
            same = (home, member.architecture, member.byte_order, *claim)
            groups.setdefault(same, []).append(member)
    for found in groups.values():
        if len(found) > 1:
            folder = home_of(found[0].name)
            yield SetSubject(
                folder=folder or ".", architecture=found[0].architecture, members=tuple(found)
            )


def pairs_of(members: Sequence[SetMember | ProjectorMember]) -> Iterator[PairSubject]:
    """Yield every projector file with the text models in its folder.

    A folder that is named like a quantization is taken for the one that it is in.
    """
    models = [each for each in members if isinstance(each, SetMember)]
    for each in members:
        if isinstance(each, ProjectorMember):
            home = home_of(each.name)
            beside = tuple(model for model in models if home_of(model.name) == home)
            if beside:
                yield PairSubject(folder=home or ".", projector=each, models=beside)


def home_of(name: str) -> str:
    """Return a file's folder, and of one that is named like a quantization the one above it."""
    folder, _ = os.path.split(name)
    above, name = os.path.split(folder)
    return above if name and LABEL.sub("", name) == "" else folder


def audit_set(
    subject: Compared,
    rules: Iterable[Rule],
    severities: Mapping[str, Severity],
) -> SubjectReport | None:
    """Hold files against each other; ``None`` where nothing is to be said.

    Of an upload, that it is what it should be: somebody asked for that.
    """
    findings: list[Finding] = []
    skips: list[Skip] = []
    errors: list[AuditError] = []
    for rule in rules:
        for told in heard(rule, _said(rule, subject), errors.append):
            match told:
                case Hit():
                    findings.append(_finding(rule, told, severities))
                case Skip():
                    skips.append(told)
    if not findings and not skips and not isinstance(subject, UploadSubject):
        return None
    return SubjectReport(
        target=subject.repository if isinstance(subject, UploadSubject) else subject.folder,
        kind="set",
        errors=tuple(map(Problem.of, errors)),
        architecture=subject.architecture if isinstance(subject, SetSubject) else None,
        findings=tuple(findings),
        skips=tuple(skips),
    )


def _said(rule: Rule, subject: Compared) -> Iterator[Outcome]:
    match rule.check, subject:
        case OnSet(check), SetSubject():
            yield from check(subject, Settings())
        case OnPair(check), PairSubject():
            yield from check(subject, Settings())
        case OnFolder(check), FolderSubject():
            yield from check(subject, Settings())
        case OnUpload(check), UploadSubject():
            yield from check(subject, Settings())
        case _:
            return


def _finding(rule: Rule, hit: Hit, severities: Mapping[str, Severity]) -> Finding:
    severity = severities.get(rule.id, hit.level)
    fix = None
    if hit.repair is not None:
        fix = fix_command(hit.repair, file=hit.where.file or "", rewritable=False)
    return Finding.of(rule, hit, where=hit.where, severity=severity, fix=fix)


def _named(member: SetMember) -> bool:
    stem, has_label = stem_of(member.name)
    return bool(stem) and has_label


def _claimed(member: SetMember) -> tuple[object, ...] | None:
    """Return what a file without a telling name claims to be, ``None`` for nothing."""
    name = member.values.get("general.name") or member.values.get("general.basename")
    if not name:
        return None
    sizes = ("block_count", "embedding_length")
    return ("claimed", name, *(member.values.get(member.fields.key(size)) for size in sizes))

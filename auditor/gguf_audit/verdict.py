"""What an audit says: one report, one part per subject, in the shape of its JSON."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from gguf_audit.checkpoint import ReferenceOrigin
from gguf_audit.errors import AuditError, UnknownArchitectureError
from gguf_audit.finding import Finding, Skip
from gguf_audit.json_values import as_json, cut, without_surrogates
from gguf_audit.layout import CacheLayout
from gguf_audit.limits import LIMITS
from gguf_audit.repairing import repair_to_dict
from gguf_audit.rule import Severity
from gguf_audit.runtime.measured import Probe
from gguf_audit.targets import SourceOrigin
from gguf_audit.where import Where

__all__ = [
    "Accepted",
    "BaselineFacts",
    "BytesAt",
    "CacheReport",
    "FileSummary",
    "PolicyFacts",
    "Problem",
    "ReferenceFacts",
    "Report",
    "Status",
    "SubjectKind",
    "SubjectReport",
    "Summary",
    "pardoned",
]

SubjectKind = Literal["model", "vocabulary", "adapter", "mmproj", "imatrix", "set", "log", "other"]


class Status(enum.StrEnum):
    """What became of one subject."""

    CLEAN = "clean"
    FINDINGS = "findings"
    #: Nothing found, but some rules could not look.
    PARTIAL = "partial"
    NOT_AUDITED = "not-audited"


class FileSummary(Struct, frozen=True, kw_only=True):
    """One physical file of a subject."""

    name: str
    size_bytes: int
    header_sha256: str
    #: Of the whole file, where that was asked for and is known.
    sha256: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the file in the shape of the JSON report."""
        whole = {} if self.sha256 is None else {"sha256": self.sha256}
        return {
            "name": self.name,
            "size_bytes": self.size_bytes,
            "header_sha256": self.header_sha256,
            **whole,
        }


class ReferenceFacts(Struct, frozen=True, kw_only=True):
    """Which reference a subject was held against."""

    id: str
    revision: str | None
    origin: ReferenceOrigin
    #: What the text report tells about it, "" for nothing. The JSON has it in the skips.
    note: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return the reference in the shape of the JSON report."""
        return {"id": cut(self.id), "revision": self.revision, "origin": self.origin}


class SourceFacts(Struct, frozen=True, kw_only=True):
    """Where the files of a subject came from, and what reading them cost."""

    #: Repository, address without anything secret, or name in a store.
    id: str
    revision: str | None
    origin: SourceOrigin
    #: What the text report tells about it, "" for nothing.
    note: str
    #: Requests for this subject, redirects among them; a repository's listing is counted
    #: with its first one.
    requests: int
    #: Bytes of the answers' bodies.
    bytes: int

    def to_dict(self) -> dict[str, object]:
        """Return the source in the shape of the JSON report."""
        return asdict(self)


class Problem(Struct, frozen=True, kw_only=True):
    """Why something that was asked for was not audited."""

    #: ``AuditError.code``.
    code: str
    message: str
    where: Where

    @classmethod
    def of(cls, error: AuditError, *, file: str | None = None) -> Problem:
        """Take an exception's reason, and ``file`` for its place where it names none."""
        where = error.where
        if where.file is None:
            where = replace(where, file=file)
        return cls(code=error.code, message=error.message, where=where)

    def to_dict(self) -> dict[str, object]:
        """Return the reason in the shape of the JSON report."""
        where = _where_to_dict(self.where)
        return {"code": self.code, "message": cut(self.message), "where": where}


class BytesAt(Struct, frozen=True, kw_only=True):
    """Bytes of cache at one context length: llama.cpp, one sequence, f16."""

    tokens: int
    implied: int
    expected: int | None
    ideal: int | None
    #: Every layer keeps every token, its attention heads unpacked.
    full_attention: int

    def to_dict(self) -> dict[str, object]:
        """Return the row in the shape of the JSON report."""
        return asdict(self)


class CacheReport(Struct, frozen=True, kw_only=True):
    """What the file makes llama.cpp keep, beside what it should."""

    implied: CacheLayout
    #: Layout of a right conversion.
    expected: CacheLayout | None
    #: What the architecture itself needs.
    ideal: CacheLayout | None
    bytes: tuple[BytesAt, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the layouts and their bytes in the shape of the JSON report."""
        return {
            "implied": self.implied.to_dict(),
            "expected": None if self.expected is None else self.expected.to_dict(),
            "ideal": None if self.ideal is None else self.ideal.to_dict(),
            "bytes": [row.to_dict() for row in self.bytes],
        }


class Accepted(Struct, frozen=True, kw_only=True):
    """A finding that doesn't count, because somebody has said so."""

    finding: Finding
    by: Literal["policy", "baseline"]
    #: Why, as the policy has it.
    reason: str | None = None
    #: ISO date of the last day on which a suppression counts.
    expires: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the finding in the shape of the JSON report, with who accepted it."""
        said = {"by": self.by, "reason": self.reason, "expires": self.expires}
        return {**_finding_to_dict(self.finding), "suppression": said}


class PolicyFacts(Struct, frozen=True, kw_only=True):
    """Which policy an audit went by."""

    #: ``None`` where only a profile was asked for.
    file: str | None
    #: Nobody named the file: it was found from the working directory upwards.
    found: bool
    profile: str | None
    #: What its author should hear: suppressions that no longer count.
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the policy in the shape of the JSON report."""
        return {
            "file": self.file,
            "found": self.found,
            "profile": self.profile,
            "notes": list(self.notes),
        }


class BaselineFacts(Struct, frozen=True, kw_only=True):
    """Which earlier report an audit was held against."""

    file: str
    #: What it knows and nobody finds any more: (target, rule, fingerprint).
    stale: tuple[tuple[str, str, str], ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the baseline in the shape of the JSON report."""
        return {
            "file": self.file,
            "stale": [
                {"target": target, "rule": rule, "fingerprint": fingerprint}
                for target, rule, fingerprint in self.stale
            ],
        }


class SubjectReport(Struct, frozen=True, kw_only=True):
    """What an audit says of one model: a file, or a split set read as one."""

    target: str
    kind: SubjectKind = "model"
    files: tuple[FileSummary, ...] = ()
    #: ``None`` for what was simply named by its path.
    source: SourceFacts | None = None
    reference: ReferenceFacts | None = None
    #: Why something that was asked for was not audited; rules may have run all the same.
    errors: tuple[Problem, ...] = ()
    architecture: str | None = None
    #: ``None`` where llama.cpp's layout isn't known; then an error or a finding says why.
    cache: CacheReport | None = None
    #: What an installed llama.cpp did with it, if that was asked for and could be seen.
    probe: Probe | None = None
    findings: tuple[Finding, ...] = ()
    skips: tuple[Skip, ...] = ()
    #: Findings that a policy or a baseline has accepted; they count for nothing.
    suppressed: tuple[Accepted, ...] = ()

    @property
    def status(self) -> Status:
        """Findings first, then what kept us from looking, then clean."""
        if self.findings:
            return Status.FINDINGS
        if self.errors:
            return Status.NOT_AUDITED
        if any(skip.kind != "not-applicable" for skip in self.skips):
            return Status.PARTIAL
        return Status.CLEAN

    def incomplete(self, *, allow_unknown: bool = False) -> bool:
        """Whether something that was asked for was not audited: exit code 3.

        A rule that lacks evidence nobody promised is no such thing; a rule that
        crashed or ran into a limit is. ``allow_unknown`` pardons an unknown
        architecture and nothing else.
        """
        excused = pardoned(allow_unknown=allow_unknown)
        return any(error.code not in excused for error in self.errors) or any(
            skip.kind in ("limit", "crashed") for skip in self.skips
        )

    def to_dict(self) -> dict[str, object]:
        """Return the subject in the shape of the JSON report."""
        document = {
            "target": self.target,
            "kind": self.kind,
            "files": [file.to_dict() for file in self.files],
            "source": None if self.source is None else self.source.to_dict(),
            "reference": None if self.reference is None else self.reference.to_dict(),
            "status": self.status.value,
            "errors": [error.to_dict() for error in self.errors],
            "architecture": as_json(self.architecture),
            "cache": None if self.cache is None else self.cache.to_dict(),
            "probe": None if self.probe is None else self.probe.to_dict(),
            "findings": [_finding_to_dict(finding) for finding in self.findings],
            "skips": [{**skip.to_dict(), "reason": cut(skip.reason)} for skip in self.skips],
            "suppressed": [each.to_dict() for each in self.suppressed],
        }
        return cast("dict[str, object]", without_surrogates(document))


class Summary(Struct, frozen=True, kw_only=True):
    """How many of what, over all subjects."""

    errors: int
    warnings: int
    infos: int
    #: Subjects of which something that was asked for was not audited.
    not_audited: int
    #: Rules that could not look, counted once per subject.
    skipped: int
    #: Findings that a policy or a baseline has accepted.
    suppressed: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the counts in the shape of the JSON report."""
        return asdict(self)


class Report(Struct, frozen=True, kw_only=True):
    """What an audit says of everything it was asked to look at."""

    #: Version of this tool.
    version: str
    #: Runtime -> the build or version whose behaviour is meant.
    runtimes: Mapping[str, str]
    subjects: tuple[SubjectReport, ...]
    #: Files that were found and left to others: the other parts of ``--shard``.
    elsewhere: int = 0
    policy: PolicyFacts | None = None
    baseline: BaselineFacts | None = None

    @property
    def empty(self) -> bool:
        """Whether there was nothing to audit, for whoever has the other parts neither."""
        return not self.subjects and not self.elsewhere

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of all subjects, in their order."""
        return tuple(finding for subject in self.subjects for finding in subject.findings)

    @property
    def skips(self) -> tuple[Skip, ...]:
        """Skips of all subjects, in their order."""
        return tuple(skip for subject in self.subjects for skip in subject.skips)

    @property
    def summary(self) -> Summary:
        """Count over all subjects."""
        severities = [finding.severity for finding in self.findings]
        return Summary(
            errors=severities.count(Severity.ERROR),
            warnings=severities.count(Severity.WARNING),
            infos=severities.count(Severity.INFO),
            not_audited=sum(subject.incomplete() for subject in self.subjects),
            skipped=sum(skip.kind != "not-applicable" for skip in self.skips),
            suppressed=sum(len(subject.suppressed) for subject in self.subjects),
        )

    def exit_code(
        self, fail_on: Severity | None = Severity.ERROR, *, allow_unknown: bool = False
    ) -> int:
        """Return 1 for a finding that fails, else 3 for a gap, else 0.

        ``fail_on`` is the lowest severity that fails, ``None`` for never. An audit
        of nothing at all is a gap.
        """
        if fail_on is not None and any(
            finding.severity.rank >= fail_on.rank for finding in self.findings
        ):
            return 1
        if not self.subjects:
            return 3 if self.empty else 0
        gaps = (subject.incomplete(allow_unknown=allow_unknown) for subject in self.subjects)
        return 3 if any(gaps) else 0

    def head(self) -> dict[str, object]:
        """Return what the JSON document says before its subjects."""
        document = {
            "version": 1,
            "tool": {"name": "gguf-audit", "version": self.version},
            "runtimes": dict(self.runtimes),
            "policy": None if self.policy is None else self.policy.to_dict(),
            "baseline": None if self.baseline is None else self.baseline.to_dict(),
        }
        return cast("dict[str, object]", without_surrogates(document))

    def to_dict(self) -> dict[str, object]:
        """Return the whole JSON document."""
        return {
            **self.head(),
            "subjects": [subject.to_dict() for subject in self.subjects],
            "summary": self.summary.to_dict(),
        }


def pardoned(*, allow_unknown: bool) -> frozenset[str]:
    """Return the codes of the errors that leave an audit whole."""
    return frozenset({UnknownArchitectureError.code}) if allow_unknown else frozenset()


def _finding_to_dict(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": cut(finding.message),
        "where": _where_to_dict(finding.where),
        "key": as_json(finding.where.key),
        "tensor": as_json(finding.where.tensor),
        "layer": finding.where.layer,
        "expected": as_json(finding.expected),
        "actual": as_json(finding.actual),
        "unit": as_json(finding.unit),
        "origin": None if finding.origin is None else finding.origin.value,
        "consequences": _sentences(finding.consequences),
        "repair": None if finding.repair is None else as_json(repair_to_dict(finding.repair)),
        "fix": as_json(finding.fix),
        "authority": cut(finding.authority),
        "help": finding.help,
        "fingerprint": finding.fingerprint,
    }


def _where_to_dict(where: Where) -> dict[str, object]:
    """Return a place whose names, 64 KiB in a hostile file, are cut."""
    return {name: as_json(part) for name, part in where.to_dict().items()}


def _sentences(sentences: tuple[str, ...]) -> list[str]:
    """Return the first sentences, and how many there are more."""
    shown = [cut(sentence) for sentence in sentences[: LIMITS.shown_items]]
    rest = len(sentences) - len(shown)
    return [*shown, f"and {rest:,} more"] if rest > 0 else shown

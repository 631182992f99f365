"""Examines one file: gathers the evidence, hears the rules, and says what came out."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct
from msgspec.structs import replace

from gguf_audit.against import Against, Reference, unmet
from gguf_audit.cache_table import DEFAULT_LENGTHS, cache_table, lengths_of
from gguf_audit.causes import UNPUBLISHED, one_per_cause
from gguf_audit.checkpoint import Checkpoint
from gguf_audit.companions import encoder_of, is_old_imatrix, projector_of
from gguf_audit.errors import AuditError, CrashedError, ReferenceUnavailableError
from gguf_audit.evidence import ProjectorMember, SetMember, Settings
from gguf_audit.expectation import lacks
from gguf_audit.finding import Finding, Skip, heard
from gguf_audit.gathering import gather
from gguf_audit.gguf import Card, Gguf
from gguf_audit.layout import CacheLayout
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.repairing import fix_command
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnCompanion,
    OnConversion,
    OnFolder,
    OnModel,
    OnPair,
    OnSet,
    OnUpload,
    Outcome,
    Rule,
    Severity,
)
from gguf_audit.runtime.generation import reference_ends
from gguf_audit.sets import member_of
from gguf_audit.skips import as_asked, why_not
from gguf_audit.targets import Located
from gguf_audit.verdict import (
    FileSummary,
    Problem,
    ReferenceFacts,
    SourceFacts,
    SubjectReport,
)

if TYPE_CHECKING:
    from gguf_audit.probes.templates import Analyst

__all__ = ["Examined", "Examiner"]

#: Rules that tell that the reference is another model's.
_TELLING = frozenset({"ARCH001", "ARCH005", "ARCH011"})
#: Projector files of a folder that are opened for what else a model takes in.
_BESIDE = 16


class Examined(Struct, frozen=True, kw_only=True):
    """What an audit says of a file, and what others of its folder can be held against."""

    report: SubjectReport
    member: SetMember | ProjectorMember | None = None


class Examiner:
    """Examines files as a mandate says."""

    def __init__(
        self, mandate: Mandate, against: Against, analyst: Callable[[], Analyst] | None
    ) -> None:
        """Take who is asked about chat templates, ``None`` where no rule wants to know."""
        self.mandate = mandate
        self.against = against
        self.analyst = analyst

    def examine(self, located: Located) -> Examined:
        """Examine a file; whatever keeps us from that is in its report."""
        try:
            examined = self._examine(located)
        except Exception as error:
            # One file that we fail on must not hide the others.
            if self.mandate.debug:
                raise
            examined = self.failed(located, CrashedError.of(error))
        return replace(examined, report=replace(examined.report, source=_source_facts(located)))

    def failed(self, located: Located, error: AuditError) -> Examined:
        """Return what there is to say of a file that couldn't be examined."""
        report = SubjectReport(
            target=located.name,
            kind="imatrix" if is_old_imatrix(located.name) else "other",
            reference=_reference_facts(self.against.common),
            errors=(Problem.of(error, file=located.name),),
        )
        return Examined(report=report)

    def _examine(self, located: Located) -> Examined:
        try:
            gguf = located.open()
        except AuditError as error:
            return self.failed(located, error)
        reference = self.against.of(gguf, located)
        examination = _Examination(gguf, located, reference, self.mandate, self.analyst)
        report = examination.report()
        try:
            member = self._member(gguf, located, report, examination.origin())
            return Examined(report=report, member=member)
        except AuditError as error:
            problem = Problem.of(error, file=located.name)
            return Examined(report=replace(report, errors=(*report.errors, problem)))

    def _member(
        self, gguf: Gguf, located: Located, report: SubjectReport, origin: Checkpoint | None
    ) -> SetMember | ProjectorMember | None:
        """Return what others of the folder can be held against, if any rule does that.

        ``origin`` is the checkpoint that it can have been made from.
        """
        if not (located.found and self.mandate.compares(OnSet, OnPair, OnFolder)):
            return None
        if report.kind == "mmproj":
            return projector_of(gguf, located.name)
        if report.kind != "model":
            return None
        asked = located.listed and self.mandate.compares(OnFolder)
        encoder = encoder_of(gguf, origin) if asked else ""
        return member_of(gguf, located.name, _known_wrong(report), encoder)


def _known_wrong(report: SubjectReport) -> frozenset[str]:
    """Return the keys that are known to be wrong; what is only suspected others can confirm."""
    found = (each for each in report.findings if each.severity is Severity.ERROR)
    return frozenset(each.where.key for each in found if each.where.key is not None)


def _source_facts(located: Located) -> SourceFacts | None:
    source = located.source
    if source is None:
        return None
    spent = None if located.traffic is None else located.traffic.take()
    return SourceFacts(
        id=source.id,
        revision=source.revision,
        origin=source.origin,
        note=source.note,
        requests=0 if spent is None else spent.requests,
        bytes=0 if spent is None else spent.bytes,
    )


def _reference_facts(reference: Reference) -> ReferenceFacts | None:
    if not isinstance(reference, Checkpoint):
        return None
    return ReferenceFacts(
        id=reference.id,
        revision=reference.revision,
        origin=reference.origin,
        note="; ".join(filter(None, (reference.found, reference.note, lacks(reference)))),
    )


def _card(located: Located, mandate: Mandate) -> Card | None:
    """Return the model card beside a file."""
    # Elsewhere a card is one more request, which only a policy is worth.
    worth = mandate.publishes or located.local_path() is not None
    return located.card() if worth else None


def _encoders_beside(located: Located) -> frozenset[str]:
    """Return the encoders that other projector files in a folder of this machine have."""
    path = located.local_path()
    if path is None:
        return frozenset()
    # Only a projector without one of its checkpoint's encoders is asked about.
    from gguf_audit.formats.gguf import open_gguf
    from gguf_audit.runtime.clip import encodings
    from gguf_audit.sources import LocalTree

    folder, own = Path(path).parent, Path(path).name
    found: set[str] = set()
    with contextlib.suppress(AuditError):
        others = [name for name in LocalTree(folder).names() if _is_projector(name) and name != own]
        for name in others[:_BESIDE]:
            with contextlib.suppress(AuditError):
                found.update(each.encoder for each in encodings(open_gguf(folder / name)))
    return frozenset(found)


def _is_projector(name: str) -> bool:
    return "mmproj" in name.lower() and name.lower().endswith(".gguf")


class _Examination:
    """The audit of one model: its evidence, and what the rules made of it."""

    def __init__(
        self,
        gguf: Gguf,
        located: Located,
        reference: Reference,
        mandate: Mandate,
        analyst: Callable[[], Analyst] | None,
    ) -> None:
        self.gguf = gguf
        self.located = located
        self.mandate = mandate
        lengths = mandate.lengths or DEFAULT_LENGTHS
        self.evidence = gather(
            gguf,
            located.local_path(),
            reference,
            probe_lengths=lengths if mandate.probe else (),
            analyst=analyst,
        )
        self.evidence.model = replace(
            self.evidence.model,
            # Not by a method: what holds itself isn't let go of when it is done.
            load_card=functools.cache(lambda: _card(located, mandate)),
            digests=self._pinned(),
        )
        if self.evidence.companion is not None:
            self.evidence.companion = replace(
                self.evidence.companion, load_beside=lambda: _encoders_beside(located)
            )
        self.mandate = self._insisting(mandate)
        self.skips: list[Skip] = []

    def _insisting(self, mandate: Mandate) -> Mandate:
        """Return a mandate that insists on each family of which no rule can look."""
        blind = [
            codes
            for codes in mandate.families
            if all(why_not(mandate.rules[code], self.evidence, mandate) for code in codes)
        ]
        return (
            replace(mandate, insisted=frozenset(mandate.insisted).union(*blind))
            if blind
            else mandate
        )

    def origin(self) -> Checkpoint | None:
        """Return the reference if the file can have been made from it."""
        conversion = self.evidence.conversion
        if isinstance(conversion, Absent):
            return None
        becomes = conversion.expected_architecture
        return conversion.checkpoint if becomes == self.gguf.architecture else None

    def report(self) -> SubjectReport:
        """Run the rules and say what came out."""
        evidence = self.evidence
        findings = tuple(self._findings())
        cache = cache_table(evidence, self.mandate.lengths)
        files = tuple(
            FileSummary(
                name=file.name,
                size_bytes=file.size_bytes,
                header_sha256=file.header_sha256,
                sha256=self._whole_sha256(file.name),
            )
            for file in self.gguf.files
        )
        for missing in (
            *self._uncompared(findings),
            *unmet(self.mandate.require, evidence.reference),
        ):
            evidence.missed(missing)
        for error in (*evidence.errors, evidence.model.implied):
            if isinstance(error, AuditError):
                error.forget()
        probe = evidence.model.probe
        return SubjectReport(
            target=self.located.name,
            kind=evidence.kind,
            files=files,
            reference=_reference_facts(evidence.reference),
            errors=tuple(Problem.of(error, file=self.gguf.name) for error in evidence.errors),
            architecture=self.gguf.architecture,
            cache=cache,
            probe=None if isinstance(probe, Absent) else probe,
            findings=findings,
            skips=tuple(self.skips),
        )

    def _uncompared(self, findings: tuple[Finding, ...]) -> Iterator[AuditError]:
        """Yield an error where rules had nothing to compare, and none was chosen that says so."""
        conversion = self.evidence.conversion
        why = None if isinstance(conversion, Absent) else conversion.mismatch
        kept = any(skip.reason == why for skip in self.skips)
        if why is not None and kept and not any(each.rule in _TELLING for each in findings):
            yield ReferenceUnavailableError(why)

    def _pinned(self) -> dict[str, str]:
        """Return the sha256 of the files that the policy pins; no other is read whole."""
        policy = self.mandate.policy
        if policy is None:
            return {}
        digests: dict[str, str] = {}
        for file in self.gguf.files:
            if policy.hash_of(file.name) is None:
                continue
            try:
                digests[file.name] = self.located.sha256_of(file.name)
            except AuditError as error:
                self.evidence.missed(error)
        return digests

    def _whole_sha256(self, name: str) -> str | None:
        if not self.mandate.whole:
            return None
        known = self.evidence.model.digests.get(name)
        if known is not None:
            return known
        try:
            return self.located.sha256_of(name)
        except AuditError as error:
            if self.located.local_path() is not None:
                self.evidence.missed(error)
            return None

    def _findings(self) -> Iterator[Finding]:
        settings = self._settings()
        ignored = self.mandate.ignored
        hits: list[tuple[Rule, Hit]] = []
        for rule in (*self.mandate.rules.values(), *ignored.values()):
            for told in self._heard(rule, settings):
                match told:
                    case Hit():
                        hits.append((rule, self._as_published(rule, told)))
                    case Skip() if rule.id not in ignored:
                        self.skips.append(told)
                    case Skip():
                        pass
        for rule, hit in one_per_cause(hits, ignored=ignored.keys()):
            yield self._finding(rule, hit)

    def _settings(self) -> Settings:
        conversion = self.evidence.conversion
        return Settings(
            lengths=lengths_of(self.evidence, self.mandate.lengths),
            has_expected_layout=(
                not isinstance(conversion, Absent) and isinstance(conversion.expected, CacheLayout)
            ),
            policy=self.mandate.policy,
            reference_ends=self._reference_ends(),
        )

    def _reference_ends(self) -> frozenset[int] | None:
        conversion = self.evidence.conversion
        if isinstance(conversion, Absent) or conversion.mismatch is not None:
            return None
        if self.evidence.model.generation is None:
            return None
        try:
            ends = reference_ends(conversion.checkpoint)
            tokenizer = conversion.checkpoint.tokenizer
        except AuditError as error:
            self.evidence.missed(error)
            return None
        if not ends and not isinstance(tokenizer, Absent) and "eos" in tokenizer.special_ids:
            ends = frozenset({tokenizer.special_ids["eos"]})
        return ends or None

    def _heard(self, rule: Rule, settings: Settings) -> Iterator[Hit | Skip]:
        """Yield what a rule says of this file, or why it says nothing."""
        skip = why_not(rule, self.evidence, self.mandate)
        if skip is not None:
            yield skip
            return
        for told in heard(rule, self._said(rule, settings), self.evidence.missed):
            yield as_asked(told, rule, self.mandate) if isinstance(told, Skip) else told

    def _said(self, rule: Rule, settings: Settings) -> Iterator[Outcome]:
        conversion, companion = self.evidence.conversion, self.evidence.companion
        match rule.check:
            case OnModel(check):
                yield from check(self.evidence.model, settings)
            case OnConversion(check):
                if isinstance(conversion, Absent):
                    yield NoEvidence(conversion.reason)
                else:
                    yield from check(conversion, settings)
            case OnCompanion(check):
                if companion is not None:
                    yield from check(companion, settings)
            case OnSet() | OnPair() | OnFolder() | OnUpload():
                return
            case _ as never:
                assert_never(never)

    def _as_published(self, rule: Rule, hit: Hit) -> Hit:
        """Lower an error to a warning where the reference is no published configuration."""
        reference = self.evidence.reference
        if (
            hit.level is not Severity.ERROR
            or not _compares(rule)
            or not isinstance(reference, Checkpoint)
            or reference.published
        ):
            return hit
        return replace(hit, level=Severity.WARNING, consequences=(*hit.consequences, UNPUBLISHED))

    def _finding(self, rule: Rule, hit: Hit) -> Finding:
        where = hit.where
        if where.file is None:
            where = replace(where, file=self.gguf.files[0].name)
        fix = None
        if hit.repair is not None:
            fix = fix_command(hit.repair, file=self.located.name, rewritable=self._rewritable())
        severity = self.mandate.severities.get(rule.id, hit.level)
        return Finding.of(rule, hit, where=where, severity=severity, fix=fix)

    def _rewritable(self) -> bool:
        """Whether gguf-py's scripts can copy this file without harm."""
        return (
            self.located.local_path() is not None
            and len(self.gguf.files) == 1
            and self.gguf.files[0].byte_order == "little"
            and all(
                tensor.type.needs is None and tensor.type.block_elements is not None
                for tensor in self.gguf.tensors.values()
            )
        )


def _compares(rule: Rule) -> bool:
    """Tell whether a rule holds a file against its reference."""
    return isinstance(rule.check, OnConversion) or (
        isinstance(rule.check, OnCompanion) and Need.REFERENCE in rule.needs
    )

"""Puts an audit together: find, read, gather evidence, run the rules, report.

The only module that composes. Whatever one target does, the others are audited.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import gguf_audit
from gguf_audit import arch
from gguf_audit.errors import (
    AuditError,
    LimitError,
    MalformedError,
    ProbeError,
    ReferenceUnavailableError,
    Refused,
    SourceError,
    UnknownArchitectureError,
)
from gguf_audit.evidence import NOT_PROBED, Conversion, Model, Settings
from gguf_audit.formats.gguf import open_gguf, shard_name
from gguf_audit.layout import CacheLayout
from gguf_audit.reference import AUTO, References, expected_fields, lacks
from gguf_audit.rule import (
    Finding,
    Hit,
    Need,
    NoEvidence,
    OnConversion,
    OnModel,
    Outcome,
    Rule,
    Severity,
    Skip,
    SkipKind,
    fingerprint,
    fix_command,
)
from gguf_audit.runtime import ideal, llama_cpp
from gguf_audit.runtime.measured import Probe
from gguf_audit.subject import Absent, Checkpoint, Fields, Gguf
from gguf_audit.verdict import (
    BytesAt,
    CacheReport,
    FileSummary,
    Problem,
    ReferenceFacts,
    Report,
    SubjectKind,
    SubjectReport,
)
from gguf_audit.where import Where

__all__ = ["DEFAULT_LENGTHS", "REQUIRABLE", "RUNTIMES", "audit_targets"]

#: Runtimes whose behaviour the report means, and the build it was measured on.
RUNTIMES = {"llama.cpp": "b11434", "vllm": "0.33.0"}
#: Context lengths of the cache table; the training length is added.
DEFAULT_LENGTHS = (4096, 32768)
#: Parts of a reference that a user may insist on.
REQUIRABLE = ("reference", "hub", "tokenizer", "template")

_ARCHITECTURE_KEY = "general.architecture"
_NO_ERROR_YET = "the reference isn't a published configuration, so this is no error yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What the user asked for, whatever the target."""

    rules: Mapping[str, Rule]
    severities: Mapping[str, Severity]
    lengths: tuple[int, ...]
    require: frozenset[str]
    #: Ask an installed llama.cpp about every model.
    probe: bool
    #: The reference, the reason why it can't be had, or ``None`` if none was asked for.
    reference: Checkpoint | AuditError | None
    #: Where every file names its own: what opens them.
    named: References | None


def audit_targets(
    targets: Sequence[str],
    *,
    against: str | None = None,
    rules: Mapping[str, Rule],
    severities: Mapping[str, Severity] | None = None,
    lengths: tuple[int, ...] = (),
    require: frozenset[str] = frozenset(),
    probe: bool = False,
) -> Report:
    """Audit files and folders, each by itself or against one reference.

    ``against`` is what ``open_checkpoint`` takes, or ``auto`` for the one that each file
    names. ``severities`` overrides the level of every finding of a rule, ``lengths`` the
    context lengths of the cache table, ``require`` (of ``REQUIRABLE``) makes a missing
    part of the reference an audit that failed, ``probe`` asks an installed llama.cpp about
    every model. Never raises AuditError: what can't be audited is in the report.
    """
    references = References()
    wanted = _Wanted(
        rules=rules,
        severities=severities or {},
        lengths=lengths,
        require=require,
        probe=probe,
        reference=None if against in (None, AUTO) else _reference(references, against),
        named=references if against == AUTO else None,
    )
    subjects = tuple(
        subject
        for target in targets
        for located in _locate(target)
        for subject in [_audit(located, wanted)]
    )
    return Report(version=gguf_audit.__version__, runtimes=RUNTIMES, subjects=subjects)


def _reference(references: References, against: str) -> Checkpoint | AuditError:
    try:
        return references.open(against)
    except AuditError as error:
        return error


def _named(references: References, gguf: Gguf, path: str) -> Checkpoint | AuditError:
    try:
        return references.named_by(gguf, path)
    except AuditError as error:
        return error


@dataclass(frozen=True, slots=True)
class _Located:
    """One model of a target, or the reason why there is none."""

    name: str
    error: AuditError | None = None


def _locate(target: str) -> Iterator[_Located]:
    """Yield the models that a target means: a file, or every model in a folder."""
    path = Path(target)
    if not path.is_dir():
        yield _Located(target)
        return
    unread: list[OSError] = []
    found = False
    for name in _models_in(path, unread):
        found = True
        yield _Located(name)
    for error in unread:
        found = True
        name = os.fsdecode(error.filename)
        yield _Located(name, SourceError(f"can't list {name}: {error.strerror}"))
    if not found:
        yield _Located(target, SourceError(f"{target} has no .gguf file in it"))


def _models_in(folder: Path, unread: list[OSError]) -> Iterator[str]:
    """Yield every GGUF file below a folder, of a split set only its first shard here.

    Folders that can't be listed are added to ``unread``.
    """
    sets: set[tuple[str, str, int]] = set()
    for root, folders, files in os.walk(folder, onerror=unread.append):
        folders.sort()
        for name in sorted(files):
            if not name.endswith(".gguf"):
                continue
            shard = shard_name(name)
            if shard is not None:
                identity = (root, shard.stem, shard.count)
                if identity in sets:
                    continue
                sets.add(identity)
            yield str(Path(root) / name)


def _audit(located: _Located, wanted: _Wanted) -> SubjectReport:
    facts = _reference_facts(wanted.reference)
    try:
        if located.error is not None:
            raise located.error
        gguf = open_gguf(located.name)
    except AuditError as error:
        problem = Problem.of(_placed(error, located.name))
        return SubjectReport(target=located.name, kind="other", reference=facts, errors=(problem,))
    if wanted.named is not None:
        wanted = replace(wanted, reference=_named(wanted.named, gguf, located.name))
        facts = _reference_facts(wanted.reference)
    return _Audit(gguf, located.name, wanted).report(facts)


def _placed(error: AuditError, name: str) -> AuditError:
    if error.where.file is None:
        error.where = replace(error.where, file=name)
    return error


def _reference_facts(checkpoint: Checkpoint | AuditError | None) -> ReferenceFacts | None:
    if not isinstance(checkpoint, Checkpoint):
        return None
    return ReferenceFacts(
        id=checkpoint.id,
        revision=checkpoint.revision,
        origin=checkpoint.origin,
        note="; ".join(filter(None, (checkpoint.found, checkpoint.note, lacks(checkpoint)))),
    )


class _Audit:
    """The audit of one model: its evidence, gathered once, and what the rules said."""

    def __init__(self, gguf: Gguf, target: str, wanted: _Wanted) -> None:
        self.gguf = gguf
        self.target = target
        self.wanted = wanted
        self.kind: SubjectKind = _kind(gguf)
        self.errors: list[AuditError] = []
        self.skips: list[Skip] = []
        self.model = replace(self._model(), probe=self._probe())
        self.conversion = self._conversion()

    def report(self, facts: ReferenceFacts | None) -> SubjectReport:
        """Run the rules and say what came out."""
        findings = tuple(self._findings())
        cache = self._cache()
        self._check_required()
        return SubjectReport(
            target=self.target,
            kind=self.kind,
            files=tuple(
                FileSummary(
                    name=file.name,
                    size_bytes=file.size_bytes,
                    header_sha256=file.header_sha256,
                )
                for file in self.gguf.files
            ),
            reference=facts,
            errors=tuple(Problem.of(_placed(error, self.gguf.name)) for error in self.errors),
            architecture=self.gguf.architecture,
            cache=cache,
            probe=None if isinstance(self.model.probe, Absent) else self.model.probe,
            findings=findings,
            skips=tuple(self.skips),
        )

    # Evidence

    def _model(self) -> Model:
        name = self.gguf.architecture
        fields = Fields(name or "", self.gguf.fields)
        known = None if name is None else arch.by_name(name)
        if known is None:
            missing = Absent(f"{_ARCHITECTURE_KEY} is {'absent' if name is None else repr(name)}")
            if name is not None and self.kind in ("model", "vocabulary"):
                message = f"the cache of architecture {name!r} isn't known"
                where = Where(key=_ARCHITECTURE_KEY)
                self.errors.append(UnknownArchitectureError(message, where=where))
            return Model(gguf=self.gguf, fields=fields, architecture=missing, implied=missing)
        implied: CacheLayout | Refused | Absent
        try:
            implied = arch.implied_layout(fields)
        except Refused as error:
            # A vocabulary by itself needs no hyper-parameters.
            implied = Absent(error.message) if self.kind == "vocabulary" else error
        except AuditError as error:
            self.errors.append(error)
            implied = Absent(error.message)
        return Model(gguf=self.gguf, fields=fields, architecture=known, implied=implied)

    def _probe(self) -> Probe | Absent:
        if not self.wanted.probe:
            return NOT_PROBED
        if self.kind != "model":
            return Absent(f"llama.cpp makes no context of this kind: {self.kind}")
        # Only who asks for it pays for what it takes to run a process.
        from gguf_audit.probes import llama_cpp as installed

        path = Path(self.target)
        if len(self.gguf.files) > 1:
            # llama.cpp wants the first shard and finds the others itself.
            path = path.with_name(Path(self.gguf.files[0].name).name)
        found = installed.probe(path, self.wanted.lengths or DEFAULT_LENGTHS)
        if isinstance(found, Absent):
            self.errors.append(ProbeError(found.reason))
        return found

    def _conversion(self) -> Conversion | Absent:
        checkpoint = self.wanted.reference
        if checkpoint is None:
            return Absent("needs a reference: give --against")
        if isinstance(checkpoint, AuditError):
            self.errors.append(
                ReferenceUnavailableError(checkpoint.message, where=checkpoint.where)
            )
            return Absent("the reference can't be read")
        expected = self._expected_fields(checkpoint)
        if isinstance(expected, Absent):
            return Conversion(
                model=self.model,
                checkpoint=checkpoint,
                expected_architecture=expected,
                expected_fields=expected,
                expected=expected,
                ideal=self._ideal(checkpoint),
            )
        if expected.architecture != self.gguf.architecture:
            other: Fields | Absent = Absent(
                f"the reference becomes {expected.architecture!r}, "
                f"the file is {self.gguf.architecture!r}"
            )
        else:
            other = expected
        return Conversion(
            model=self.model,
            checkpoint=checkpoint,
            expected_architecture=expected.architecture,
            expected_fields=other,
            expected=other if isinstance(other, Absent) else self._expected_layout(other),
            ideal=self._ideal(checkpoint),
        )

    def _expected_fields(self, checkpoint: Checkpoint) -> Fields | Absent:
        if isinstance(checkpoint.config, Absent) and checkpoint.gguf is None:
            return checkpoint.config
        try:
            fields = expected_fields(checkpoint)
            if checkpoint.gguf is not None:
                # Nobody has checked that file: rules may take its types for granted.
                with contextlib.suppress(UnknownArchitectureError):
                    arch.implied_layout(fields)
        except AuditError as error:
            self.errors.append(error)
            return Absent(error.message)
        return fields

    def _expected_layout(self, fields: Fields) -> CacheLayout | Absent:
        try:
            return arch.implied_layout(fields)
        except AuditError as error:
            return Absent(f"llama.cpp wouldn't load a right conversion: {error.message}")

    def _ideal(self, checkpoint: Checkpoint) -> CacheLayout | Absent:
        if isinstance(checkpoint.config, Absent):
            return checkpoint.config
        try:
            return arch.ideal_layout(checkpoint.config)
        except AuditError as error:
            return Absent(error.message)

    def _check_required(self) -> None:
        checkpoint = self.wanted.reference
        for part in sorted(self.wanted.require):
            reason = _missing(part, checkpoint)
            if reason is not None:
                message = f"--require {part}: {reason}"
                self.errors.append(ReferenceUnavailableError(message))

    # Rules

    def _findings(self) -> Iterator[Finding]:
        conversion = self.conversion
        settings = Settings(
            lengths=self._lengths(),
            has_expected_layout=(
                not isinstance(conversion, Absent) and isinstance(conversion.expected, CacheLayout)
            ),
        )
        hits: list[tuple[Rule, Hit]] = []
        for rule in self.wanted.rules.values():
            skip = self._skip(rule)
            if skip is not None:
                self.skips.append(skip)
                continue
            try:
                for outcome in self._run(rule, settings):
                    if isinstance(outcome, NoEvidence):
                        reason = outcome.reason
                        self.skips.append(Skip(rule=rule.id, kind=outcome.kind, reason=reason))
                    else:
                        hits.append((rule, self._as_published(rule, outcome)))
            except LimitError as error:
                self.skips.append(Skip(rule=rule.id, kind="limit", reason=error.message))
            except (MalformedError, SourceError) as error:
                # Arrays and tokenizers are read when a rule first asks for them.
                self._missed(error)
                self.skips.append(Skip(rule=rule.id, kind="no-evidence", reason=error.message))
            except Exception as error:
                # One broken rule must not hide what the others find.
                reason = f"{type(error).__name__}: {error}"
                self.skips.append(Skip(rule=rule.id, kind="crashed", reason=reason))
        for rule, hit in _one_per_cause(hits):
            yield self._finding(rule, hit)

    def _missed(self, error: AuditError) -> None:
        """Note once why something wasn't read, however many rules ask for it."""
        if all(error.message != known.message for known in self.errors):
            self.errors.append(error)

    def _run(self, rule: Rule, settings: Settings) -> Iterator[Outcome]:
        match rule.check:
            case OnModel():
                return rule.check.check(self.model, settings)
            case OnConversion():
                if isinstance(self.conversion, Absent):
                    return iter((NoEvidence(self.conversion.reason),))
                return rule.check.check(self.conversion, settings)

    def _skip(self, rule: Rule) -> Skip | None:
        """Say why a rule has nothing to look at, ``None`` if it has."""
        if Need.PROBE in rule.needs and isinstance(self.model.probe, Absent):
            asked = self.wanted.probe and self.kind == "model"
            unseen: SkipKind = "no-evidence" if asked else "not-applicable"
            return Skip(rule=rule.id, kind=unseen, reason=self.model.probe.reason)
        if self.kind not in ("model", "vocabulary") and not rule.id.startswith("GGUF"):
            reason = f"only the file structure of this kind is audited: {self.kind}"
            return Skip(rule=rule.id, kind="no-evidence", reason=reason)
        if isinstance(rule.check, OnModel):
            return None
        if isinstance(self.conversion, Absent):
            kind: SkipKind = "not-applicable" if self.wanted.reference is None else "no-evidence"
            return Skip(rule=rule.id, kind=kind, reason=self.conversion.reason)
        becomes = self.conversion.expected_architecture
        if (
            not rule.any_architecture
            and isinstance(becomes, str)
            and becomes != self.gguf.architecture
        ):
            reason = f"the reference becomes {becomes!r}, the file is {self.gguf.architecture!r}"
            return Skip(rule=rule.id, kind="not-applicable", reason=reason)
        missing: CacheLayout | Fields | Refused | Absent | None = None
        if Need.HYPERPARAMETERS in rule.needs:
            missing = self.conversion.expected_fields
        if Need.LAYOUT in rule.needs:
            missing = self.conversion.expected
            if not isinstance(missing, Absent):
                missing = self.model.implied
        if isinstance(missing, Absent):
            return Skip(rule=rule.id, kind="no-evidence", reason=missing.reason)
        if isinstance(missing, Refused):
            return Skip(rule=rule.id, kind="not-applicable", reason="llama.cpp refuses the file")
        return None

    def _as_published(self, rule: Rule, hit: Hit) -> Hit:
        """Lower an error to a warning where the reference is no published configuration."""
        checkpoint = self.wanted.reference
        if (
            hit.level is not Severity.ERROR
            or not isinstance(rule.check, OnConversion)
            or not isinstance(checkpoint, Checkpoint)
            or checkpoint.published
        ):
            return hit
        return replace(hit, level=Severity.WARNING, consequences=(*hit.consequences, _NO_ERROR_YET))

    def _finding(self, rule: Rule, hit: Hit) -> Finding:
        where = hit.where
        if where.file is None:
            where = replace(where, file=self.gguf.files[0].name)
        fix = None
        if hit.repair is not None:
            fix = fix_command(hit.repair, file=self.target, rewritable=self._rewritable())
        return Finding(
            rule=rule.id,
            name=rule.name,
            severity=self.wanted.severities.get(rule.id, hit.level),
            message=hit.message,
            where=where,
            expected=hit.expected,
            actual=hit.actual,
            origin=hit.origin,
            consequences=hit.consequences,
            repair=hit.repair,
            fix=fix,
            authority=rule.authority,
            fingerprint=fingerprint(rule.id, where),
        )

    def _rewritable(self) -> bool:
        """Whether gguf-py's scripts can copy this file without harm."""
        return (
            len(self.gguf.files) == 1
            and self.gguf.files[0].byte_order == "little"
            and all(
                tensor.type.needs is None and tensor.type.block_elements is not None
                for tensor in self.gguf.tensors.values()
            )
        )

    # Cache table

    def _lengths(self) -> tuple[int, ...]:
        if self.wanted.lengths:
            return self.wanted.lengths
        lengths: set[int] = set(DEFAULT_LENGTHS)
        # A wrong type is load-refused's finding.
        with contextlib.suppress(Refused):
            lengths.add(self.model.fields.integer("context_length") or DEFAULT_LENGTHS[0])
        return tuple(sorted(lengths))

    def _cache(self) -> CacheReport | None:
        implied = self.model.implied
        if not isinstance(implied, CacheLayout):
            return None
        conversion = self.conversion
        expected = None if isinstance(conversion, Absent) else _known(conversion.expected)
        needed = None if isinstance(conversion, Absent) else _known(conversion.ideal)
        rows: list[BytesAt] = []
        for tokens in self._lengths():
            try:
                rows.append(self._bytes_at(tokens, expected=expected, needed=needed))
            except AuditError as error:
                self.errors.append(error)
                break
        return CacheReport(implied=implied, expected=expected, ideal=needed, bytes=tuple(rows))

    def _bytes_at(
        self, tokens: int, *, expected: CacheLayout | None, needed: CacheLayout | None
    ) -> BytesAt:
        fields = self.model.fields
        expected_bytes: int | None = None
        if expected is not None and not isinstance(self.conversion, Absent):
            expected_fields = self.conversion.expected_fields
            if not isinstance(expected_fields, Absent):
                expected_bytes = llama_cpp.plan(expected_fields, context=tokens).total_bytes
        return BytesAt(
            tokens=tokens,
            implied=llama_cpp.plan(fields, context=tokens).total_bytes,
            expected=expected_bytes,
            ideal=None if needed is None else ideal.ideal_bytes(needed, tokens),
            full_attention=llama_cpp.full_attention_bytes(fields, tokens),
        )


def _known(layout: CacheLayout | Absent) -> CacheLayout | None:
    return None if isinstance(layout, Absent) else layout


def _kind(gguf: Gguf) -> SubjectKind:
    """Say what a file is, by ``general.type``, its architecture and what it holds."""
    type_, architecture = gguf.string("general.type"), gguf.architecture
    if type_ == "adapter":
        return "adapter"
    if type_ == "mmproj" or architecture == "clip":
        return "mmproj"
    if type_ == "imatrix" or architecture == "imatrix":
        return "imatrix"
    if architecture == "controlvector":
        return "other"
    if not gguf.tensors and gguf.array("tokenizer.ggml.tokens") is not None:
        return "vocabulary"
    return "model" if architecture is not None or gguf.tensors else "other"


def _missing(part: str, checkpoint: Checkpoint | AuditError | None) -> str | None:
    """Return why a required part of the reference isn't there, ``None`` if it is."""
    if checkpoint is None:
        return "no reference was given"
    if isinstance(checkpoint, AuditError):
        return "the reference can't be read"
    if part == "hub" and checkpoint.origin != "hub":
        return f"the reference is not from the Hub, {checkpoint.found or 'which was not asked'}"
    found: object = None
    try:
        if part == "tokenizer":
            found = checkpoint.tokenizer
        if part == "template":
            found = checkpoint.chat_templates
    except AuditError as error:
        return error.message
    return found.reason if isinstance(found, Absent) else None


def _one_per_cause(hits: Sequence[tuple[Rule, Hit]]) -> Iterator[tuple[Rule, Hit]]:
    """Fold a hit into the one that its rule defers to, so one cause is one finding.

    The other hit must name the same key, unless the deferring one names none. What it
    is folded into becomes as severe as it is itself.
    """
    hosts = _hosts(hits)
    folded: dict[int, list[Hit]] = {}
    for index in hosts:
        folded.setdefault(_last(index, hosts), []).append(hits[index][1])
    for index, (rule, hit) in enumerate(hits):
        if index not in hosts:
            yield rule, _with(hit, folded.get(index, ()))


def _with(hit: Hit, folded: Sequence[Hit]) -> Hit:
    if not folded:
        return hit
    worst = max((hit, *folded), key=lambda each: each.level.rank).level
    own = hit.consequences
    if worst is Severity.ERROR:
        own = tuple(each for each in own if each != _NO_ERROR_YET)
    return replace(hit, level=worst, consequences=(*own, *(each.message for each in folded)))


def _hosts(hits: Sequence[tuple[Rule, Hit]]) -> dict[int, int]:
    """Return which hit is folded into which, by position.

    Looked up by rule and key: a hostile file has more hits than may be compared with
    each other. Two rules of a pack that defer to each other both stay.
    """
    first: dict[tuple[str, str | None], int] = {}
    for position, (rule, hit) in enumerate(hits):
        first.setdefault((rule.id, hit.where.key), position)
        first.setdefault((rule.id, None), position)
    spoken = {rule.id: rule for rule, _ in hits}
    tellers = {
        rule.id: [other for other in spoken.values() if _defers(rule, other)]
        for rule in spoken.values()
    }
    hosts: dict[int, int] = {}
    for position, (rule, hit) in enumerate(hits):
        found = [first.get((other.id, hit.where.key)) for other in tellers[rule.id]]
        told = [host for host in found if host is not None]
        if told and _last(min(told), hosts) != position:
            hosts[position] = min(told)
    return hosts


def _defers(rule: Rule, other: Rule) -> bool:
    codes = (other.id, _family(other))
    return other is not rule and any(code in rule.defers_to for code in codes)


def _last(index: int, hosts: Mapping[int, int]) -> int:
    while index in hosts:
        index = hosts[index]
    return index


def _family(rule: Rule) -> str:
    return rule.id.rstrip("0123456789")

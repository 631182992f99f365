"""Puts an audit together: find, read, gather evidence, run the rules, report.

The only module that composes. Whatever one target does, the others are audited.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct
from msgspec.structs import replace

import gguf_audit
from gguf_audit.cache_table import DEFAULT_LENGTHS, cache_table, lengths_of
from gguf_audit.causes import UNPUBLISHED, one_per_cause
from gguf_audit.checkpoint import Checkpoint
from gguf_audit.companions import is_old_imatrix, projector_of
from gguf_audit.errors import (
    AuditError,
    CrashedError,
    LimitError,
    MalformedError,
    ReferenceUnavailableError,
    Refused,
    SourceError,
)
from gguf_audit.evidence import (
    NOT_PROBED,
    PairSubject,
    ProjectorMember,
    SetMember,
    SetSubject,
    Settings,
)
from gguf_audit.expectation import lacks
from gguf_audit.fields import Fields
from gguf_audit.formats.file_types import FILE_TYPES
from gguf_audit.formats.gguf import shard_name
from gguf_audit.gathering import Reference, gather, unmet
from gguf_audit.gguf import Gguf
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Finding,
    Hit,
    Need,
    NoEvidence,
    OnCompanion,
    OnConversion,
    OnModel,
    OnPair,
    OnSet,
    OnUpload,
    Outcome,
    Rule,
    Severity,
    Skip,
    SkipKind,
    fix_command,
    kept_to,
)
from gguf_audit.runtime.generation import reference_ends
from gguf_audit.sets import audit_set, member_of, pairs_of, sets_of
from gguf_audit.targets import Located, Targets
from gguf_audit.verdict import (
    FileSummary,
    Problem,
    ReferenceFacts,
    Report,
    SourceFacts,
    SubjectReport,
)

if TYPE_CHECKING:
    from gguf_audit.policies import Policy
    from gguf_audit.probes.templates import Analyst
    from gguf_audit.reference import References

__all__ = ["RUNTIMES", "audit_targets"]

#: Runtimes whose behaviour the report means, and the build it was measured on.
RUNTIMES = {"llama.cpp": "b11434", "vllm": "0.33.0"}
#: Files from which on several processes are quicker than one.
_MANY = 16

#: What an audit says, and what the other files of a folder can be held against.
_Audited = tuple[SubjectReport, SetMember | ProjectorMember | None]


class _Wanted(Struct, frozen=True, kw_only=True):
    """What the user asked for, whatever the target."""

    rules: Mapping[str, Rule]
    #: Run as well, so that their echoes are known for what they are, and left out.
    ignored: Mapping[str, Rule]
    #: Rules that the user named: where one can't look, something asked for is missing.
    insisted: AbstractSet[str]
    severities: Mapping[str, Severity]
    lengths: tuple[int, ...]
    require: frozenset[str]
    #: Ask an installed llama.cpp about every model.
    probe: bool
    #: Returns who is asked about chat templates; ``None`` where no rule wants to know.
    analyst: Callable[[], Analyst] | None
    #: Tell the sha256 of whole files.
    whole: bool
    #: Whether a fault of ours ends the run, so that it can be seen where it is.
    debug: bool = False
    reference: Reference
    #: Where every file names its own: what opens them.
    named: References | None
    policy: Policy | None
    #: What opens the references that the policy names.
    references: References | None


def audit_targets(
    targets: Sequence[str],
    *,
    against: str | None = None,
    rules: Mapping[str, Rule],
    ignored: Mapping[str, Rule] | None = None,
    insisted: AbstractSet[str] = frozenset(),
    severities: Mapping[str, Severity] | None = None,
    lengths: tuple[int, ...] = (),
    require: frozenset[str] = frozenset(),
    probe: bool = False,
    policy: Policy | None = None,
    jobs: int | None = 1,
    part: tuple[int, int] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    matches: str | None = None,
    whole: bool = False,
    debug: bool = False,
) -> Report:
    """Audit files and folders, each by itself or against one reference.

    ``against`` is what ``open_checkpoint`` takes, or ``auto`` for the one that each file
    names. ``ignored`` rules say nothing, nor does what only echoes them; a rule that is
    ``insisted`` on and can't look leaves the audit partial. ``severities`` overrides the
    level of every finding of a rule, ``lengths`` the context lengths of the cache table,
    ``require`` (of ``REQUIRABLE``) makes a missing part of the reference an audit that
    failed, ``probe`` asks an installed llama.cpp about every model. ``policy`` has what
    files must keep to, and what a file is held against where ``against`` names nothing;
    rules, levels and requirements of it are the caller's to pass on. ``jobs`` is the
    number of processes, ``None`` for what suits; of the models ``part`` takes every so
    manieth, (1, 3) the first, the fourth and so on. ``progress`` is told the files done,
    their number and the last one's name. ``matches`` is the folder that repositories are
    held against; ``whole`` asks for the sha256 of whole files, as far as nothing has to be
    fetched for it. An audit that fails by a fault of ours is one that failed, and with
    ``debug`` one that raises. Never raises AuditError: what can't be audited is in the report.
    """
    reference: Reference = None
    named = references = None
    if against is not None or (policy is not None and policy.references):
        # Only who compares pays for what opens checkpoints, cards and the Hub.
        from gguf_audit.reference import AUTO, References

        references = References()
        if against == AUTO:
            named = references
        elif against is not None:
            reference = _reference(references, against)
    chosen = (*rules.values(), *(ignored or {}).values())
    with contextlib.ExitStack() as stack:
        # One for the whole run, and none where no file has a template.
        analyst = functools.cache(lambda: stack.enter_context(_analyst()))
        wanted = _Wanted(
            rules=rules,
            ignored=ignored or {},
            insisted=insisted,
            severities=severities or {},
            lengths=lengths,
            require=require,
            probe=probe,
            analyst=analyst if any(Need.RENDER in rule.needs for rule in chosen) else None,
            reference=reference,
            named=named,
            policy=policy,
            references=references if against is None else None,
            whole=whole,
            debug=debug,
        )
        places = Targets()
        found = [
            _Item(target, located)
            for target in range(len(targets))
            for located in places.locate(targets[target])
        ]
        uploads: list[SubjectReport] = []
        if matches is not None:
            found, uploads = _matched(found, targets, matches, wanted)
        mine = found if part is None else _part(found, *part)
        subjects = tuple(_subjects(mine, wanted, _jobs(jobs, mine, wanted), progress))
    return Report(
        version=gguf_audit.__version__,
        runtimes=RUNTIMES,
        subjects=(*subjects, *(uploads if part is None or part[0] == 1 else ())),
        elsewhere=len(found) - len(mine),
    )


def _analyst() -> Analyst:
    # Only a file that has a template pays for what it takes to run a process.
    from gguf_audit.probes.templates import Analyst

    return Analyst()


class _Item(Struct, frozen=True):
    """One file that was found, and the number of the target that it was found by."""

    target: int
    located: Located

    @property
    def model(self) -> tuple[object, ...]:
        """What files have in common whose names say that they are shards of one set."""
        folder, name = os.path.split(self.located.name)
        shard = shard_name(name) if self.located.found else None
        if shard is None:
            return (self.target, self.located.name)
        return (self.target, folder, shard.stem, shard.count)


def _matched(
    found: Sequence[_Item], targets: Sequence[str], folder: str, wanted: _Wanted
) -> tuple[list[_Item], list[SubjectReport]]:
    """Hold repositories against a folder; what is the same is then read in the folder."""
    from gguf_audit.sources.hub import HubTree
    from gguf_audit.uploads import compared, same

    items: list[_Item] = []
    reports: list[SubjectReport] = []
    for number, target in enumerate(targets):
        own = [item for item in found if item.target == number]
        if all(item.located.error is not None for item in own):
            items += own  # Why there is nothing to compare is said already.
            continue
        tree = next((each.located.tree for each in own if each.located.tree is not None), None)
        paths: dict[str, str] = {}
        try:
            if not isinstance(tree, HubTree):
                raise SourceError(f"{target} is no repository that the Hub could be asked for")
            upload = compared(tree, target, folder)
            report = audit_set(upload, wanted.rules.values(), wanted.severities)
            if report is not None:
                reports.append(report)
            paths = same(upload)
        except AuditError as error:
            error.message = f"--matches {folder}: {error.message}"
            problem = Problem.of(_placed(error, target))
            reports.append(SubjectReport(target=target, kind="set", errors=(problem,)))
        items += [
            replace(
                item,
                located=replace(item.located, path=paths[item.located.file], tree=None),
            )
            if item.located.file in paths
            else item
            for item in own
        ]
    return items, reports


def _part(found: Sequence[_Item], number: int, parts: int) -> list[_Item]:
    """Return the files of one part of several, a set's shards together."""
    models: dict[tuple[object, ...], int] = {}
    return [
        item for item in found if models.setdefault(item.model, len(models)) % parts == number - 1
    ]


def _jobs(jobs: int | None, items: Sequence[_Item], wanted: _Wanted) -> int:
    """Return how many processes shall work, one where more don't pay."""
    if jobs == 1 or len(items) < 2 or (jobs is None and len(items) < _MANY):
        return 1
    from gguf_audit.parallel import can_fork, cores

    if not can_fork():
        return 1
    if isinstance(wanted.reference, Checkpoint):
        # Read here, it is read once and not once in every process.
        for part in ("tokenizer", "tensors"):
            # Whoever needs it meets the error again, and says so.
            with contextlib.suppress(Exception):
                getattr(wanted.reference, part)
    return min(jobs or cores(), len(items))


def _subjects(
    items: Sequence[_Item],
    wanted: _Wanted,
    jobs: int,
    progress: Callable[[int, int, str], None] | None,
) -> Iterator[SubjectReport]:
    """Audit what the targets mean: of a set in a folder one subject, not one per shard.

    What a set's own count says are its shards; a name alone could hide another model.
    """
    covered: set[tuple[int, str]] = set()
    members: list[SetMember | ProjectorMember] = []
    before = 0
    for done, (item, (subject, member)) in _audited(items, wanted, jobs, covered):
        if item.target != before:
            yield from _compared(members, wanted)
            members, before = [], item.target
        names = item.located.covers([file.name for file in subject.files])
        covered.update((item.target, name) for name in names)
        if member is not None:
            members.append(member)
        if progress is not None:
            progress(done, len(items), subject.target)
        yield subject
    yield from _compared(members, wanted)


def _audited(
    items: Sequence[_Item], wanted: _Wanted, jobs: int, covered: AbstractSet[tuple[int, str]]
) -> Iterator[tuple[int, tuple[_Item, _Audited]]]:
    """Yield each file that no set has covered before, its number, and its audit."""

    def skip(item: _Item) -> bool:
        return item.located.found and (item.target, item.located.name) in covered

    if jobs == 1:
        for number, item in enumerate(items, 1):
            if not skip(item):
                yield number, (item, _audit(item.located, wanted))
        return
    from gguf_audit.parallel import in_order

    begun: set[tuple[object, ...]] = set()

    def later(item: _Item) -> bool:
        # Another shard of a set that is under way, most likely.
        known = item.model in begun
        begun.add(item.model)
        return known

    # Each process counts what it spends itself; what the listings took is known here.
    listings = {
        (item.target, item.located.name): item.located.traffic.take()
        for item in items
        if item.located.traffic is not None
    }
    results = in_order(
        lambda item: _audit(item.located, wanted),
        items,
        jobs=jobs,
        crashed=lambda item: (_crashed(item.located, wanted), None),
        skip=skip,
        hold=later,
    )
    for number, (item, (subject, member)) in enumerate(results, 1):
        listing = listings.get((item.target, item.located.name))
        source = subject.source
        if listing is not None and source is not None:
            source = replace(
                source,
                requests=source.requests + listing.requests,
                bytes=source.bytes + listing.bytes,
            )
        yield number, (item, (replace(subject, source=source), member))


def _crashed(located: Located, wanted: _Wanted) -> SubjectReport:
    message = "the process that audited it ended, out of memory perhaps"
    return _unread(located, wanted, CrashedError(message))


def _compared(
    members: Sequence[SetMember | ProjectorMember], wanted: _Wanted
) -> Iterator[SubjectReport]:
    models = [each for each in members if isinstance(each, SetMember)]
    groups: list[SetSubject | PairSubject] = [*sets_of(models), *pairs_of(members)]
    for several in groups:
        compared = audit_set(several, wanted.rules.values(), wanted.severities)
        if compared is not None:
            yield compared


def _reference(references: References, against: str) -> Reference:
    try:
        return references.open(against)
    except AuditError as error:
        return error


def _named(references: References, gguf: Gguf, located: Located) -> Reference:
    try:
        return references.named_by(gguf, located.base_model)
    except AuditError as error:
        return error


def _audit(located: Located, wanted: _Wanted) -> _Audited:
    """Audit a model; of one in a folder, say as well what others can be held against."""
    try:
        report, member = _read(located, wanted)
    except Exception as error:
        # One file that we fail on must not hide the others.
        if wanted.debug:
            raise
        fault = CrashedError(f"internal error: {type(error).__name__}: {error} (see --debug)")
        report, member = _unread(located, wanted, fault), None
    return replace(report, source=_source_facts(located)), member


def _read(located: Located, wanted: _Wanted) -> _Audited:
    try:
        gguf = located.open()
    except AuditError as error:
        return _unread(located, wanted, error), None
    wanted = _governed(located.name, wanted)
    if wanted.named is not None:
        wanted = replace(wanted, reference=_named(wanted.named, gguf, located))
    report = _Audit(gguf, located, wanted).report()
    compared = any(isinstance(rule.check, OnSet | OnPair) for rule in wanted.rules.values())
    if not (compared and located.found and report.kind in ("model", "mmproj")):
        return report, None
    try:
        if report.kind == "mmproj":
            return report, projector_of(gguf, located.name)
        return report, member_of(gguf, located.name, _told(report))
    except AuditError as error:
        problem = Problem.of(_placed(error, located.name))
        return replace(report, errors=(*report.errors, problem)), None


def _unread(located: Located, wanted: _Wanted, error: AuditError) -> SubjectReport:
    return SubjectReport(
        target=located.name,
        kind="imatrix" if is_old_imatrix(located.name) else "other",
        reference=_reference_facts(wanted.reference),
        errors=(Problem.of(_placed(error, located.name)),),
    )


def _governed(target: str, wanted: _Wanted) -> _Wanted:
    """Hold a target against what its policy names, where the user names nothing."""
    if wanted.policy is None or wanted.references is None:
        return wanted
    reference = wanted.policy.reference_of(target)
    if reference is None:
        return wanted
    if reference == "auto":
        return replace(wanted, named=wanted.references)
    return replace(wanted, reference=_reference(wanted.references, reference))


def _told(report: SubjectReport) -> frozenset[str]:
    """Return the keys that are known to be wrong; what is only suspected others can confirm."""
    found = (each for each in report.findings if each.severity is Severity.ERROR)
    return frozenset(each.where.key for each in found if each.where.key is not None)


def _placed(error: AuditError, name: str) -> AuditError:
    if error.where.file is None:
        error.where = replace(error.where, file=name)
    return error


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


def _reference_facts(checkpoint: Reference) -> ReferenceFacts | None:
    if not isinstance(checkpoint, Checkpoint):
        return None
    return ReferenceFacts(
        id=checkpoint.id,
        revision=checkpoint.revision,
        origin=checkpoint.origin,
        note="; ".join(filter(None, (checkpoint.found, checkpoint.note, lacks(checkpoint)))),
    )


def _compares(rule: Rule) -> bool:
    """Tell whether a rule holds a file against its reference."""
    return isinstance(rule.check, OnConversion) or (
        isinstance(rule.check, OnCompanion) and Need.REFERENCE in rule.needs
    )


def _unseen(rule: Rule, reason: str) -> Skip:
    return Skip(rule=rule.id, kind="no-evidence", reason=reason)


def _not_for(rule: Rule, reason: str) -> Skip:
    return Skip(rule=rule.id, kind="not-applicable", reason=reason)


def _no_card() -> None:
    """Return no model card: it isn't looked for."""


class _Audit:
    """The audit of one model: its evidence, and what the rules made of it."""

    def __init__(self, gguf: Gguf, located: Located, wanted: _Wanted) -> None:
        self.gguf = gguf
        self.target = located.name
        self.located = located
        self.wanted = wanted
        lengths = wanted.lengths or DEFAULT_LENGTHS
        self.evidence = gather(
            gguf,
            located.local_path(),
            wanted.reference,
            probe_lengths=lengths if wanted.probe else (),
            analyst=wanted.analyst,
        )
        self._name_and_card()
        if wanted.policy is not None and wanted.policy.hashes:
            self._hash(wanted.policy)
        self.skips: list[Skip] = []

    def _name_and_card(self) -> None:
        """Add what the file says of its quantization, and the card beside it."""
        provenance = self.wanted.policy is not None and self.wanted.policy.provenance
        # Elsewhere a card is one more request, which only a policy is worth.
        near = provenance or self.located.local_path() is not None
        number = self.gguf.fields.get("general.file_type")
        name = FILE_TYPES.get(number.value) if number and isinstance(number.value, int) else None
        self.evidence.model = replace(
            self.evidence.model,
            file_type=name,
            load_card=functools.cache(self.located.card) if near else _no_card,
        )

    def _hash(self, policy: Policy) -> None:
        """Read whole the files that the policy pins, and no other."""
        digests: dict[str, str] = {}
        for file in self.gguf.files:
            if policy.hash_of(file.name) is None:
                continue
            try:
                digests[file.name] = self.located.sha256_of(file.name)
            except AuditError as error:
                self.evidence.missed(error)
        self.evidence.model = replace(self.evidence.model, digests=digests)

    def _whole_sha256(self, name: str) -> str | None:
        if not self.wanted.whole:
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

    def report(self) -> SubjectReport:
        """Run the rules and say what came out."""
        findings = tuple(self._findings())
        cache = cache_table(self.evidence, self.wanted.lengths)
        files = tuple(
            FileSummary(
                name=file.name,
                size_bytes=file.size_bytes,
                header_sha256=file.header_sha256,
                sha256=self._whole_sha256(file.name),
            )
            for file in self.gguf.files
        )
        for missing in unmet(self.wanted.require, self.wanted.reference):
            self.evidence.missed(missing)
        errors = self.evidence.errors
        for error in (*errors, self.evidence.model.implied):
            if isinstance(error, AuditError):
                error.forget()
        probe = self.evidence.model.probe
        return SubjectReport(
            target=self.target,
            kind=self.evidence.kind,
            files=files,
            reference=_reference_facts(self.wanted.reference),
            errors=tuple(Problem.of(_placed(error, self.gguf.name)) for error in errors),
            architecture=self.gguf.architecture,
            cache=cache,
            probe=None if isinstance(probe, Absent) else probe,
            findings=findings,
            skips=tuple(self.skips),
        )

    # Rules

    def _findings(self) -> Iterator[Finding]:
        conversion = self.evidence.conversion
        settings = Settings(
            lengths=lengths_of(self.evidence, self.wanted.lengths),
            has_expected_layout=(
                not isinstance(conversion, Absent) and isinstance(conversion.expected, CacheLayout)
            ),
            policy=self.wanted.policy,
            reference_ends=self._reference_ends(),
        )
        hits: list[tuple[Rule, Hit]] = []
        for rule in (*self.wanted.rules.values(), *self.wanted.ignored.values()):
            skip = self._skip(rule)
            if skip is not None:
                self._note(skip)
                continue
            try:
                for outcome in kept_to(rule, self._run(rule, settings)):
                    if isinstance(outcome, NoEvidence):
                        reason = outcome.reason
                        self._note(Skip(rule=rule.id, kind=outcome.kind, reason=reason))
                    else:
                        hits.append((rule, self._as_published(rule, outcome)))
            except (
                LimitError,
                MalformedError,
                ReferenceUnavailableError,
                SourceError,
            ) as error:
                # Arrays, tokenizers and tensor lists are read when a rule first asks for them.
                self.evidence.missed(error)
                unread: SkipKind = "limit" if isinstance(error, LimitError) else "no-evidence"
                self._note(Skip(rule=rule.id, kind=unread, reason=error.message))
            except Exception as error:
                # One broken rule must not hide what the others find.
                reason = f"{type(error).__name__}: {error}"
                self._note(Skip(rule=rule.id, kind="crashed", reason=reason))
        for rule, hit in one_per_cause(hits, ignored=self.wanted.ignored.keys()):
            yield self._finding(rule, hit)

    def _reference_ends(self) -> frozenset[int] | None:
        conversion = self.evidence.conversion
        if isinstance(conversion, Absent) or self.evidence.model.generation is None:
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

    def _note(self, skip: Skip) -> None:
        if skip.rule not in self.wanted.ignored:
            self.skips.append(skip)

    def _run(self, rule: Rule, settings: Settings) -> Iterator[Outcome]:
        match rule.check:
            case OnModel():
                return rule.check.check(self.evidence.model, settings)
            case OnConversion():
                if isinstance(self.evidence.conversion, Absent):
                    return iter((NoEvidence(self.evidence.conversion.reason),))
                return rule.check.check(self.evidence.conversion, settings)
            case OnCompanion():
                if self.evidence.companion is None:
                    return iter(())
                return rule.check.check(self.evidence.companion, settings)
            case OnSet() | OnPair() | OnUpload():
                return iter(())
            case _ as never:
                assert_never(never)

    def _skip(self, rule: Rule) -> Skip | None:
        """Say why a rule has nothing to look at, ``None`` if it has."""
        model, kind = self.evidence.model, self.evidence.kind
        if isinstance(rule.check, OnSet | OnPair):
            return _not_for(rule, "compares the files of a folder with each other")
        if isinstance(rule.check, OnUpload):
            return _not_for(rule, "compares a repository with a folder: give --matches")
        if Need.POLICY in rule.needs:
            if self.wanted.policy is None:
                return self._lacking(rule, "no policy asks for it", asked=False)
            if isinstance(rule.check, OnModel):
                return None  # A policy holds for whatever it names, models or not.
        if Need.PROBE in rule.needs and isinstance(model.probe, Absent):
            return self._lacking(
                rule, model.probe.reason, asked=self.wanted.probe and kind == "model"
            )
        if isinstance(rule.check, OnCompanion):
            return self._skip_of_companion(rule, rule.check)
        if Need.TOKENIZER in rule.needs and not self.wanted.probe:
            return self._lacking(rule, NOT_PROBED.reason, asked=False)
        if kind not in ("model", "vocabulary") and not rule.id.startswith("GGUF"):
            if self.evidence.companion is not None:
                return _not_for(
                    rule, f"looks at models, this is none: {self.evidence.companion.kind}"
                )
            what = self.evidence.foreign or kind
            return _unseen(rule, f"only the file structure of this kind is audited: {what}")
        if Need.RENDER in rule.needs and isinstance(model.chat, Absent):
            return _unseen(rule, model.chat.reason)
        if isinstance(rule.check, OnModel):
            return None
        return self._skip_of_conversion(rule)

    def _skip_of_companion(self, rule: Rule, check: OnCompanion) -> Skip | None:
        companion = self.evidence.companion
        if companion is None or companion.kind not in check.kinds:
            return _not_for(rule, f"looks at files of another kind: {', '.join(check.kinds)}")
        if Need.REFERENCE in rule.needs and isinstance(companion.checkpoint, Absent):
            asked = self.wanted.reference is not None
            return self._lacking(rule, companion.checkpoint.reason, asked=asked)
        return None

    def _skip_of_conversion(self, rule: Rule) -> Skip | None:
        conversion = self.evidence.conversion
        if isinstance(conversion, Absent):
            return self._lacking(rule, conversion.reason, asked=self.wanted.reference is not None)
        becomes, found = conversion.expected_architecture, self.gguf.architecture
        if not rule.any_architecture and isinstance(becomes, str) and becomes != found:
            return _not_for(rule, f"the reference becomes {becomes!r}, the file is {found!r}")
        if Need.VOCABULARY in rule.needs:
            return self._without_vocabulary(rule, conversion.checkpoint)
        missing: CacheLayout | Fields | Refused | Absent | None = None
        if Need.HYPERPARAMETERS in rule.needs:
            missing = conversion.expected_fields
        if Need.LAYOUT in rule.needs:
            missing = conversion.expected
            if not isinstance(missing, Absent):
                missing = self.evidence.model.implied
        if isinstance(missing, Absent):
            return _unseen(rule, missing.reason)
        return (
            _not_for(rule, "llama.cpp refuses the file") if isinstance(missing, Refused) else None
        )

    def _without_vocabulary(self, rule: Rule, checkpoint: Checkpoint) -> Skip | None:
        """Say why nobody knows the vocabulary of a right conversion, ``None`` if we do.

        A card or a config.json never has one, so nothing that was asked for is missing.
        """
        try:
            vocabulary = checkpoint.vocabulary
        except AuditError:
            return None  # The rule meets it again, where it becomes an error of the audit.
        if not isinstance(vocabulary, Absent):
            return None
        asked = not isinstance(checkpoint.tokenizer_files, Absent)
        return self._lacking(rule, vocabulary.reason, asked=asked)

    def _lacking(self, rule: Rule, reason: str, *, asked: bool) -> Skip:
        """Skip what somebody asked for, by this or by the rule's name, or what nobody did."""
        asked = asked or rule.id in self.wanted.insisted
        return _unseen(rule, reason) if asked else _not_for(rule, reason)

    def _as_published(self, rule: Rule, hit: Hit) -> Hit:
        """Lower an error to a warning where the reference is no published configuration."""
        checkpoint = self.wanted.reference
        if (
            hit.level is not Severity.ERROR
            or not _compares(rule)
            or not isinstance(checkpoint, Checkpoint)
            or checkpoint.published
        ):
            return hit
        return replace(hit, level=Severity.WARNING, consequences=(*hit.consequences, UNPUBLISHED))

    def _finding(self, rule: Rule, hit: Hit) -> Finding:
        where = hit.where
        if where.file is None:
            where = replace(where, file=self.gguf.files[0].name)
        fix = None
        if hit.repair is not None:
            fix = fix_command(hit.repair, file=self.target, rewritable=self._rewritable())
        severity = self.wanted.severities.get(rule.id, hit.level)
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

"""What every report says in the same words: verdicts, counts, reasons, references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, assert_never

from gguf_audit.evidence import NO_REFERENCE
from gguf_audit.finding import Skip, SkipKind
from gguf_audit.limits import LIMITS
from gguf_audit.report.style import Paint, Style, plural
from gguf_audit.rule import Severity
from gguf_audit.verdict import Problem, ReferenceFacts, Report, Status, SubjectReport

__all__ = [
    "ORIGINS",
    "PAINTS",
    "REASON_CHARACTERS",
    "Gap",
    "facts_of",
    "gaps",
    "models",
    "problem",
    "reference",
    "references",
    "summary",
    "targets",
    "word",
]

#: A reason may quote several strings from files.
REASON_CHARACTERS = 800
#: Files named of those that a reference is for.
_FILES = 5
#: Where a reference was found, as people are told.
ORIGINS = {
    "hub": "the Hub",
    "cache": "the local Hub cache",
    "card": "built-in card",
    "folder": "folder",
    "config": "config.json alone",
    "gguf": "another GGUF",
}
PAINTS = {Severity.ERROR: Paint.BAD, Severity.WARNING: Paint.DOUBTFUL, Severity.INFO: Paint.NOTE}
#: Kinds of skips, the worst first.
_ALARMING: tuple[SkipKind, ...] = ("crashed", "limit", "no-evidence", "not-applicable")


class Gap(NamedTuple):
    """Rules that did not look, for the same reason."""

    kind: SkipKind
    reason: str
    rules: tuple[str, ...]


def word(subject: SubjectReport) -> tuple[str, Paint]:
    """Return the verdict on a subject in one word, or two."""
    match subject.status:
        case Status.CLEAN:
            return "CLEAN", Paint.GOOD
        case Status.PARTIAL:
            return "PARTIAL", Paint.DOUBTFUL
        case Status.NOT_AUDITED:
            return "NOT AUDITED", Paint.BAD
        case Status.FINDINGS:
            worst = max((finding.severity for finding in subject.findings), key=lambda s: s.rank)
            if subject.errors and worst is Severity.INFO:
                return "NOT AUDITED", Paint.BAD  # An info is no verdict on what nobody saw.
            return worst.value.upper(), PAINTS[worst]
        case _:
            assert_never(subject.status)


def facts_of(subject: SubjectReport, style: Style) -> list[str]:
    """Return what stands beside the verdict: counts, architecture, kind."""
    if subject.status is Status.NOT_AUDITED:
        return []
    severities = [finding.severity for finding in subject.findings]
    told = [
        plural(severities.count(severity), severity.value)
        for severity in Severity
        if severity in severities
    ]
    says = [", ".join(told) or "nothing found"]
    if subject.suppressed:
        says = [", ".join(told) or "nothing else found", f"{len(subject.suppressed):,} accepted"]
    if subject.status is Status.PARTIAL:
        unseen = sum(len(gap.rules) for gap in gaps(subject.skips) if gap.kind != "not-applicable")
        says.append(f"{plural(unseen, 'rule')} could not look")
    if subject.architecture is not None:
        says.append(style.safe(subject.architecture))
    if subject.kind != "model":
        says.append(subject.kind)
    if len(subject.files) > 1:
        says.append(plural(len(subject.files), "file"))
    return says


def problem(error: Problem, subject: SubjectReport, style: Style) -> str:
    """Return why something was not audited, and where in the file."""
    where = error.where
    file = None if where.file == subject.target else where.file
    named = (file, where.key, where.tensor)
    place = [name for name in named if name is not None and name not in error.message]
    if where.offset:  # At the beginning is where everybody looks.
        place.append(f"offset {where.offset:,}")
    at = style.safe(f" ({', '.join(place)})" if place else "", limit=LIMITS.report_characters)
    return style.safe(error.message, limit=REASON_CHARACTERS) + at


def reference(facts: ReferenceFacts, style: Style) -> str:
    """Return which reference a subject was held against, and what is to be known of it."""
    name = style.safe(facts.id, limit=LIMITS.report_characters)
    if facts.revision is not None:
        name += f" at {style.safe(facts.revision)}"
    note = f"; {style.safe(facts.note, limit=REASON_CHARACTERS)}" if facts.note else ""
    return f"{name} ({ORIGINS[facts.origin]}){note}"


def references(subjects: Sequence[SubjectReport], style: Style) -> list[str]:
    """Return each reference of a run, with the files that it is for if not for all."""
    held: dict[ReferenceFacts, dict[str, None]] = {}
    files = [subject for subject in subjects if subject.kind != "set"]
    for subject in files:
        if subject.reference is not None:
            held.setdefault(subject.reference, {})[subject.target] = None
    common = len(held) == 1 and all(subject.reference is not None for subject in files)
    # Below what was not audited it would seem to be that file's.
    unclear = common and len(files) > 1 and files[-1].status is Status.NOT_AUDITED
    return [
        reference(facts, style)
        + ("" if common else f"; for {_some(list(names), style)}")
        + (f"; for all {plural(len(files), 'file')}" if unclear else "")
        for facts, names in held.items()
    ]


def _some(names: Sequence[str], style: Style) -> str:
    shown = ", ".join(style.safe(name, limit=LIMITS.report_characters) for name in names[:_FILES])
    rest = len(names) - _FILES
    return shown + (f" and {rest:,} more" if rest > 0 else "")


def gaps(skips: Iterable[Skip], *, everything: bool = False) -> list[Gap]:
    """Return the rules that did not look, folded by their reason, the alarming first.

    Those that had nothing to look at are left out unless everything is wanted, but not
    those that lacked a reference: people should hear what they could ask for.
    """
    folded: dict[tuple[SkipKind, str], dict[str, None]] = {}
    for skip in skips:
        if skip.kind == "not-applicable" and skip.reason != NO_REFERENCE.reason and not everything:
            continue
        folded.setdefault((skip.kind, skip.reason), {})[skip.rule] = None
    found = [Gap(kind, reason, tuple(rules)) for (kind, reason), rules in folded.items()]
    return sorted(found, key=lambda gap: _ALARMING.index(gap.kind))


def models(subjects: Iterable[SubjectReport]) -> int:
    """Count the models; what couldn't be read is taken for the one that somebody meant."""
    return sum(
        subject.kind in ("model", "vocabulary") or (subject.kind == "other" and not subject.files)
        for subject in subjects
    )


def targets(subjects: Iterable[SubjectReport]) -> int:
    """Count models and other files; a set is none of its own, what is said of it names its files."""
    return sum(subject.kind != "set" for subject in subjects)


def _counted(subjects: Sequence[SubjectReport]) -> str:
    """Return ``2 models``, or ``1 model, 1 other file``; ``1 file`` where none is a model."""
    found = models(subjects)
    others = targets(subjects) - found
    if not others:
        return plural(found, "model")
    if not found:
        return plural(others, "file")
    return f"{plural(found, 'model')}, {plural(others, 'other file')}"


def summary(report: Report) -> str:
    """Return in one line what was found in all subjects."""
    if report.empty:
        return "nothing was audited: there was nothing to audit"
    if not report.subjects:
        return f"0 models: the {plural(report.elsewhere, 'file')} found are of other parts"
    counts = report.summary
    says = [
        plural(counts.errors, "error"),
        plural(counts.warnings, "warning"),
        plural(counts.infos, "info"),
    ]
    if counts.suppressed:
        says.append(f"{counts.suppressed:,} accepted")
    if counts.not_audited:
        says.append(f"{counts.not_audited:,} not fully audited")
    return f"{_counted(report.subjects)}: {', '.join(says)}"

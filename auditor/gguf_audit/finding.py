"""What becomes of what a rule says: findings, and why there are no more."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from gguf_audit.errors import (
    AuditError,
    LimitError,
    MalformedError,
    ReferenceUnavailableError,
    SourceError,
)
from gguf_audit.fields import Origin
from gguf_audit.limits import LIMITS
from gguf_audit.rule import Hit, NoEvidence, Outcome, Repair, Rule, Severity
from gguf_audit.where import Where

__all__ = ["Finding", "Skip", "SkipKind", "fingerprint", "heard"]

SkipKind = Literal["not-applicable", "no-evidence", "limit", "crashed"]


class Skip(Struct, frozen=True, kw_only=True):
    """A rule that did not look, and why."""

    rule: str
    kind: SkipKind
    reason: str

    def to_dict(self) -> dict[str, object]:
        """Return the skip in the shape of the JSON report."""
        return asdict(self)


def heard(
    rule: Rule, outcomes: Iterator[Outcome], missed: Callable[[AuditError], None]
) -> Iterator[Hit | Skip]:
    """Yield what a rule says, and why it says no more.

    Whatever it raises is such a reason: one broken rule must not hide what the others
    find. ``missed`` is told what couldn't be read, for arrays, tokenizers and tensor lists
    are read when a rule first asks for them.
    """
    try:
        for outcome in _kept_to(rule, outcomes):
            if isinstance(outcome, NoEvidence):
                yield Skip(rule=rule.id, kind=outcome.kind, reason=outcome.reason)
            else:
                yield outcome
    except (LimitError, MalformedError, ReferenceUnavailableError, SourceError) as error:
        missed(error)
        kind: SkipKind = "limit" if isinstance(error, LimitError) else "no-evidence"
        yield Skip(rule=rule.id, kind=kind, reason=error.message)
    except Exception as error:
        yield Skip(rule=rule.id, kind="crashed", reason=f"{type(error).__name__}: {error}")


def _kept_to(rule: Rule, outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """Yield what a rule says, as long as it keeps to the levels that it declares.

    Raises ValueError for another level: a gate relies on what the catalogue says; and
    LimitError where it never ends.
    """
    for count, outcome in enumerate(outcomes):
        if count == LIMITS.findings_of_rule:
            raise LimitError(f"more than {count:,} faults, the rest is not told")
        if isinstance(outcome, Hit) and outcome.level not in rule.levels:
            raise ValueError(f"a finding of level {outcome.level.value}, which {rule.id} lacks")
        yield outcome


class Finding(Struct, frozen=True, kw_only=True):
    """A hit with the identity and the severity that the engine gave it."""

    rule: str
    name: str
    severity: Severity
    message: str
    where: Where
    expected: object
    actual: object
    unit: str | None = None
    origin: Origin | None
    consequences: tuple[str, ...]
    repair: Repair | None
    #: The exact command, "reconvert", or ``None`` where there is nothing to repair.
    fix: str | None
    authority: str
    fingerprint: str = ""

    @classmethod
    def of(
        cls, rule: Rule, hit: Hit, *, where: Where, severity: Severity, fix: str | None
    ) -> Finding:
        """Give a hit its rule's identity."""
        return cls(
            rule=rule.id,
            name=rule.name,
            severity=severity,
            message=hit.message,
            where=where,
            expected=hit.expected,
            actual=hit.actual,
            unit=hit.unit,
            origin=hit.origin,
            consequences=hit.consequences,
            repair=hit.repair,
            fix=fix,
            authority=rule.authority,
            fingerprint=fingerprint(rule.id, where),
        )

    @property
    def help(self) -> str:
        """The command that prints the rule's page."""
        return f"gguf-audit rules {self.rule}"


def fingerprint(rule: str, where: Where) -> str:
    """Return an identity that survives rewording: rule and place, never the message."""
    place = "\0".join(
        str(part) for part in (rule, where.key, where.tensor, where.layer, where.block)
    )
    return hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:16]

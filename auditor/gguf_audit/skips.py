"""Why a rule has nothing to look at."""

from __future__ import annotations

from typing import assert_never

from gguf_audit.checkpoint import Checkpoint
from gguf_audit.errors import AuditError, Refused
from gguf_audit.evidence import NOT_PROBED, CompanionKind
from gguf_audit.fields import Fields
from gguf_audit.finding import Skip
from gguf_audit.gathering import Evidence
from gguf_audit.layout import CacheLayout
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Need,
    OnCompanion,
    OnConversion,
    OnFolder,
    OnModel,
    OnPair,
    OnSet,
    OnUpload,
    Rule,
)

__all__ = ["as_asked", "why_not"]


def why_not(rule: Rule, evidence: Evidence, mandate: Mandate) -> Skip | None:
    """Say why a rule has nothing to look at, ``None`` if it has."""
    match rule.check:
        case OnSet() | OnPair():
            return _not_for(rule, "compares the files of a folder with each other")
        case OnFolder():
            return _not_for(rule, "looks at a folder or a repository as a whole")
        case OnUpload():
            return _not_for(rule, "compares a repository with a folder: give --matches")
        case OnModel() if Need.POLICY in rule.needs and mandate.policy is not None:
            return None  # A policy holds for whatever it names, models or not.
        case OnModel():
            return _unasked(rule, evidence, mandate) or _no_model(rule, evidence)
        case OnCompanion(kinds=kinds):
            return _unasked(rule, evidence, mandate) or _no_companion(
                rule, evidence, mandate, kinds
            )
        case OnConversion():
            return (
                _unasked(rule, evidence, mandate)
                or _no_model(rule, evidence)
                or _no_conversion(rule, evidence, mandate)
            )
        case _ as never:
            assert_never(never)


def as_asked(skip: Skip, rule: Rule, mandate: Mandate) -> Skip:
    """Return why a rule leaves something out: a gap only where somebody named the rule."""
    if skip.kind != "not-applicable":
        return skip
    return _lacking(rule, mandate, skip.reason, asked=False)


def _unasked(rule: Rule, evidence: Evidence, mandate: Mandate) -> Skip | None:
    """Say what the user would have to ask for."""
    if Need.POLICY in rule.needs and mandate.policy is None:
        return _lacking(rule, mandate, "no policy asks for it", asked=False)
    probe = evidence.model.probe
    if Need.PROBE in rule.needs and isinstance(probe, Absent):
        asked = mandate.probe and evidence.kind == "model"
        return _lacking(rule, mandate, probe.reason, asked=asked)
    if Need.TOKENIZER in rule.needs and not mandate.probe:
        return _lacking(rule, mandate, NOT_PROBED.reason, asked=False)
    if Need.VALUES in rule.needs and not evidence.is_local:
        reason = "of a remote file only the header is read"
        return _lacking(rule, mandate, reason, asked=False)
    return None


def _no_model(rule: Rule, evidence: Evidence) -> Skip | None:
    """Say what a file is that is no model, or that nobody looked at its templates."""
    kind, companion, chat = evidence.kind, evidence.companion, evidence.model.chat
    if kind not in ("model", "vocabulary") and not rule.any_kind:
        if companion is not None:
            return _not_for(rule, f"looks at models, this is none: {companion.kind}")
        what = evidence.foreign or kind
        return _unseen(rule, f"only the file structure of this kind is audited: {what}")
    if Need.RENDER in rule.needs and isinstance(chat, Absent):
        return _unseen(rule, chat.reason)
    return None


def _no_companion(
    rule: Rule, evidence: Evidence, mandate: Mandate, kinds: tuple[CompanionKind, ...]
) -> Skip | None:
    companion = evidence.companion
    if companion is None or companion.kind not in kinds:
        return _not_for(rule, f"looks at files of another kind: {', '.join(kinds)}")
    if Need.REFERENCE in rule.needs and isinstance(companion.checkpoint, Absent):
        asked = evidence.reference is not None
        return _lacking(rule, mandate, companion.checkpoint.reason, asked=asked)
    return None


def _no_conversion(rule: Rule, evidence: Evidence, mandate: Mandate) -> Skip | None:
    conversion = evidence.conversion
    if isinstance(conversion, Absent):
        asked = evidence.reference is not None
        return _lacking(rule, mandate, conversion.reason, asked=asked)
    if not rule.any_reference and conversion.mismatch is not None:
        return _not_for(rule, conversion.mismatch)
    if Need.VOCABULARY in rule.needs:
        return _no_vocabulary(rule, mandate, conversion.checkpoint)
    missing: CacheLayout | Fields | Refused | Absent | None = None
    if Need.HYPERPARAMETERS in rule.needs:
        missing = conversion.expected_fields
    if Need.LAYOUT in rule.needs:
        missing = conversion.expected
        if not isinstance(missing, Absent):
            missing = evidence.model.implied
    match missing:
        case Absent(reason=reason):
            return _unseen(rule, reason)
        case Refused():
            return _not_for(rule, "llama.cpp refuses the file")
        case _:
            return None


def _no_vocabulary(rule: Rule, mandate: Mandate, checkpoint: Checkpoint) -> Skip | None:
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
    return _lacking(rule, mandate, vocabulary.reason, asked=asked)


def _lacking(rule: Rule, mandate: Mandate, reason: str, *, asked: bool) -> Skip:
    """Skip what somebody asked for, by this or by the rule's name, or what nobody did."""
    asked = asked or rule.id in mandate.insisted
    return _unseen(rule, reason) if asked else _not_for(rule, reason)


def _unseen(rule: Rule, reason: str) -> Skip:
    return Skip(rule=rule.id, kind="no-evidence", reason=reason)


def _not_for(rule: Rule, reason: str) -> Skip:
    return Skip(rule=rule.id, kind="not-applicable", reason=reason)

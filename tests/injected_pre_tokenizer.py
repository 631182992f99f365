"""Puts one wrong splitter at a time into a file, and says what an audit made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gguf_audit.engine import audit_targets
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Rule, Severity
from gguf_audit.runtime.pre_tokenizers import GROUPS, Splitter
from gguf_audit.testing import FieldValue, TensorSpec, write_gguf
from gguf_audit_rules import load

__all__ = ["FAULTS", "Fault", "Outcome", "outcomes", "told", "wrong"]

PRE, MODEL = "tokenizer.ggml.pre", "tokenizer.ggml.model"
RULES: dict[str, Rule] = {
    rule.id: rule for rule in load() if rule.id in ("TOK001", "TOK020", "TOK021")
}
Keys = Mapping[str, FieldValue]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to do to the names of a file."""

    name: str
    #: What they become, ``None`` for a key to be lost.
    changed: Mapping[str, str | None]
    #: The rule that tells it, and the key that it names.
    found: tuple[str, str] = ("TOK020", PRE)
    #: The group that the file then names, where it names one.
    group: Splitter | None = None


#: Every group of names that split alike, by its usual name, is one kind of fault.
FAULTS: tuple[Fault, ...] = (
    Fault("no name", {PRE: None}),
    Fault("an empty name", {PRE: ""}),
    Fault("an unknown name", {PRE: "llama-4-bpe"}),
    Fault("a name in capitals", {PRE: "Qwen2"}),
    Fault("an unknown tokenizer", {MODEL: "tiktoken"}, ("TOK021", MODEL)),
    *(
        Fault(f"splits as {group.names[-1]}", {PRE: group.names[-1]}, group=group)
        for group in GROUPS
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an audit said of a fault."""

    subject: str
    fault: Fault
    #: The name that the file then has splits as the reference does.
    harmless: bool
    #: Rule, severity and key of the findings.
    findings: tuple[tuple[str, Severity, str | None], ...]
    #: Why a rule could not look.
    skipped: tuple[str, ...]


def outcomes(
    subject: str,
    keys: Keys,
    tensors: list[TensorSpec],
    reference: str,
    right: tuple[str, ...],
    folder: Path,
) -> Iterator[Outcome]:
    """Yield the outcome of every fault; ``right`` are the names that would be none."""
    for fault in FAULTS:
        broken = {key: value for key, value in keys.items() if key not in fault.changed}
        broken |= {key: value for key, value in fault.changed.items() if value is not None}
        file = write_gguf(folder / "broken.gguf", broken, tensors)
        [report] = audit_targets([str(file)], Mandate(against=reference, rules=RULES)).subjects
        yield Outcome(
            subject=subject,
            fault=fault,
            harmless=fault.group is not None and fault.group.names[-1] in right,
            findings=tuple(
                (found.rule, found.severity, found.where.key) for found in report.findings
            ),
            skipped=tuple(
                f"{skip.rule}: {skip.reason}"
                for skip in report.skips
                if skip.kind != "not-applicable"
            ),
        )


def wrong(outcome: Outcome) -> str | None:
    """Say what is wrong with an outcome, ``None`` where it is as it should be."""
    label = f"{outcome.subject}: {outcome.fault.name}"
    if outcome.skipped:
        return f"{label}: {outcome.skipped}"
    if outcome.harmless:
        alarms = [found for found in outcome.findings if found[1] is not Severity.INFO]
        return f"{label}: {alarms}" if alarms else None
    rule, key = outcome.fault.found
    expected = ((rule, Severity.ERROR, key),)
    return None if outcome.findings == expected else f"{label}: {outcome.findings}"


def told(found: list[Outcome]) -> tuple[int, int]:
    """Return how many faults that do harm were told, and how many there were."""
    harmful = [outcome for outcome in found if not outcome.harmless]
    return sum(bool(outcome.findings) for outcome in harmful), len(harmful)

"""Audits files with one fault each, and says of every fault what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gguf_audit import arch, open_gguf
from gguf_audit.engine import audit_targets
from gguf_audit.rule import Rule
from gguf_audit.subject import Fields, Gguf, Scalar
from gguf_audit.testing import write_gguf
from gguf_audit.verdict import SubjectReport
from gguf_audit_rules import load
from injector import FAULTS, Fault, TensorFault, inject

Value = Scalar | tuple[Scalar, ...]

__all__ = ["UNSEEN", "Outcome", "matrix", "outcomes", "wrong"]

#: Without those about the vocabulary, of which no fault is made here.
RULES: dict[str, Rule] = {
    rule.id: rule for rule in load() if not rule.id.startswith(("TOK", "TPL", "RUN", "PKG"))
}
#: Which rules may tell what was done to a key, by the verb.
FAMILIES = {"retype": {"ARCH007"}, "unmake": {"ARCH007"}}
METADATA = ("ARCH", "KV", "CTX", "WT")
#: Faults that no audit can see, or that are none, each with the reason.
UNSEEN = {
    "attention.value_length": "a latent is key and value at once: nothing else has a length",
    "full_attention_interval": "the list of recurrent layers goes before it",
    "attention.recurrent_layers": "the interval says the same",
    "pooling_type": "only the modules of a sentence transformer say which is right",
    "rope.scaling.type": "a factor of one scales nothing, whatever the type",
    "rope.scaling.factor": "a type of none scales nothing, whatever the factor",
    "rope.scaling.original_context_length": "nothing is scaled",
    "attention.sliding_window": "llama.cpp turns the window of Phi 3 off",
    "attention.sliding_window_pattern": "llama.cpp reads one item for each block, and no more",
    "expert_weights_scale": "a factor of one is as good as none",
    "rope.freq_base": "a model without rotation has no base",
}
#: The key that is to blame, where another one is named: they only make sense together.
TOGETHER = {
    ("lose", "rope.scaling.factor"): "rope.scaling.type",
    ("lose", "attention.value_length_mla"): "attention.key_length_mla",
    ("halve", "rope.dimension_count"): "attention.key_length",
}
#: Told twice: what follows from the first stands beside it.
TWICE = {
    "context_length": ["CTX001", "WT003"],
    "leading_dense_block_count": ["ARCH006", "WT001"],
    "rope.dimension_count": ["CTX004", "WT003"],
}

#: One that may be absent is lost under its name, and there is no place for the other name.
RENAMED = ["WT004", "WT002"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an audit said of a fault."""

    subject: str
    fault: Fault | TensorFault
    #: Codes and keys of the findings.
    findings: tuple[tuple[str, str | None], ...]
    crashed: tuple[str, ...]
    #: The runtime does with the file what it does with a right one, or never looks.
    harmless: bool


def outcomes(name: str, right: Path, reference: str, folder: Path) -> Iterator[Outcome]:
    """Yield the outcome of every fault that a right file can have."""
    gguf = open_gguf(right)
    for fault in FAULTS:
        made = inject(gguf, fault)
        if made is None:
            continue
        broken = write_gguf(folder / "broken.gguf", *made)
        [report] = audit_targets([str(broken)], against=reference, rules=RULES).subjects
        yield _outcome(name, fault, report, gguf, open_gguf(broken))


def _outcome(
    name: str, fault: Fault | TensorFault, report: SubjectReport, right: Gguf, broken: Gguf
) -> Outcome:
    return Outcome(
        subject=name,
        fault=fault,
        findings=tuple((finding.rule, finding.where.key) for finding in report.findings),
        crashed=tuple(skip.reason for skip in report.skips if skip.kind in ("crashed", "limit")),
        harmless=isinstance(fault, Fault) and _harmless(fault, right, broken),
    )


def _harmless(fault: Fault, right: Gguf, broken: Gguf) -> bool:
    architecture = right.architecture or ""
    if not arch.reads(architecture, fault.key):
        return True
    before = arch.effective(Fields(architecture, right.fields), fault.key)
    after = arch.effective(Fields(architecture, broken.fields), fault.key)
    return (
        fault.verb == "lose"
        and after is not None
        and before is not None
        and _same(before.value, after.value)
    )


def _same(one: Value, other: Value) -> bool:
    """Compare a number for all blocks with one for each of them, too."""
    if isinstance(one, tuple) and not isinstance(other, tuple):
        return set(one) == {other}
    if isinstance(one, float) and isinstance(other, int | float):
        return abs(one - other) <= 1e-5 * abs(one)
    return one == other


def wrong(outcome: Outcome) -> str | None:
    """Say what is wrong with an outcome, ``None`` where it is as it should be."""
    fault, found = outcome.fault, outcome.findings
    label = f"{outcome.subject}: {fault.name}"
    if outcome.crashed:
        return f"{label}: {outcome.crashed}"
    codes = [code for code, _ in found]
    if isinstance(fault, TensorFault):
        right = len(codes) == 1 and codes[0].startswith(METADATA)
        right = right or (fault.verb == "rename" and codes == RENAMED)
        return None if right else f"{label}: {found}"
    if not found:
        return None if outcome.harmless or fault.key in UNSEEN else f"{label}: not found"
    if len(found) > 1 and TWICE.get(fault.key) != codes:
        return f"{label}: {found}"
    code, key = next(iter(found))
    families = FAMILIES.get(fault.verb)
    if not (code in families if families else code.startswith(METADATA)):
        return None if outcome.harmless else f"{label}: {code}"
    named = {fault.key, TOGETHER.get((fault.verb, fault.key))}
    return None if key is not None and key.partition(".")[2] in named else f"{label}: names {key}"


def matrix(found: list[Outcome]) -> dict[str, tuple[int, int]]:
    """Return kind of fault -> how many files told it, and how many had it and were harmed."""
    told, had = Counter[str](), Counter[str]()
    for outcome in found:
        name = outcome.fault.name
        told[name] += bool(outcome.findings)
        had[name] += bool(outcome.findings) or not outcome.harmless
    return {name: (told[name], had[name]) for name in sorted(had)}

"""Audits files with one fault each, and says of every fault what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gguf_audit import arch, open_gguf
from gguf_audit.engine import audit_targets
from gguf_audit.fields import Fields
from gguf_audit.gguf import Gguf, Scalar
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Rule
from gguf_audit.testing import write_gguf
from gguf_audit.verdict import SubjectReport
from gguf_audit_rules import load
from injector import FAULTS, Fault, TensorFault, inject

Value = Scalar | tuple[Scalar, ...]

__all__ = ["UNSEEN", "Outcome", "matrix", "outcomes", "told_twice", "wrong"]

#: Without those about the vocabulary, of which no fault is made here.
RULES: dict[str, Rule] = {
    rule.id: rule for rule in load() if not rule.id.startswith(("TOK", "TPL", "RUN", "PKG"))
}
#: Which rules may tell what was done to a key, by the verb.
FAMILIES = {"retype": {"ARCH007"}, "unmake": {"ARCH007"}}
METADATA = ("ARCH", "KV", "CTX", "WT")
LATENT = ("deepseek_v2_lite", "deepseek_v3", "deepseek_v3_fp8", "kimi_k2", "kimi_linear")
HYBRID = ("qwen3_5", "qwen3_5moe", "qwen3next", "qwen3next_nomtp")
CHANGES = ("lose", "double", "halve")
#: Why a fault is none, or why no audit can see it -> what is done to which key of which
#: files.
REASONS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "the latent is key and value at once, so nothing else has a length": (
        CHANGES,
        "attention.value_length",
        (*LATENT, "deepseek-v2-lite"),
    ),
    "the list of recurrent layers goes before the interval": (
        CHANGES,
        "full_attention_interval",
        (*HYBRID, "qwen3.5-9b"),
    ),
    "the interval says the same as the list": (
        ("lose",),
        "attention.recurrent_layers",
        (*HYBRID, "qwen3.5-9b"),
    ),
    "without a factor no type scales anything": (
        ("lose",),
        "rope.scaling.type",
        ("cohere2", "commandr", "hunyuan_dense", "nemotron"),
    ),
    "with the type none no factor scales anything": (
        ("double",),
        "rope.scaling.factor",
        ("hunyuan_dense",),
    ),
    "llama.cpp turns the window of Phi 3 off": (
        CHANGES,
        "attention.sliding_window",
        ("phi3_longrope", "phi4_mini"),
    ),
    "llama.cpp reads one item for each block, and no more": (
        ("lengthen",),
        "attention.sliding_window_pattern",
        ("gemma4", "granite_swa", "mimo_v2"),
    ),
    "a factor of one is as good as none": (
        ("lose",),
        "expert_weights_scale",
        ("deepseek_v2_lite", "glm4moe_mtponly", "deepseek-v2-lite"),
    ),
    "no layer of Kimi Linear rotates": (("double",), "rope.freq_base", ("kimi_linear",)),
}
#: Name of a fault, name of a file -> why nothing is said of it.
UNSEEN = {
    (f"{verb} {key}", subject): reason
    for reason, (verbs, key, subjects) in REASONS.items()
    for verb in verbs
    for subject in subjects
}
#: The key that is to blame, where another one is named: they only make sense together.
TOGETHER = {
    ("lose", "rope.scaling.factor"): "rope.scaling.type",
    ("lose", "attention.value_length_mla"): "attention.key_length_mla",
    ("halve", "rope.dimension_count"): "attention.key_length",
}


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


def outcomes(name: str, right: Path, reference: str | None, folder: Path) -> Iterator[Outcome]:
    """Yield the outcome of every fault that a right file can have."""
    gguf = open_gguf(right)
    told = set(_told(_audit(right, reference)))
    for fault in FAULTS:
        made = inject(gguf, fault)
        if made is None:
            continue
        broken = write_gguf(folder / "broken.gguf", *made)
        report = _audit(broken, reference)
        found = tuple(each for each in _told(report) if each not in told)
        yield _outcome(name, fault, report, found, gguf, open_gguf(broken))


def _audit(file: Path, reference: str | None) -> SubjectReport:
    [report] = audit_targets([str(file)], Mandate(against=reference, rules=RULES)).subjects
    return report


def _told(report: SubjectReport) -> Iterator[tuple[str, str | None]]:
    return ((finding.rule, finding.where.key) for finding in report.findings)


def _outcome(
    name: str,
    fault: Fault | TensorFault,
    report: SubjectReport,
    found: tuple[tuple[str, str | None], ...],
    right: Gguf,
    broken: Gguf,
) -> Outcome:
    return Outcome(
        subject=name,
        fault=fault,
        findings=found,
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
    if said := told_twice(outcome):
        return said
    unseen = (fault.name, outcome.subject) in UNSEEN
    if not found:
        return None if outcome.harmless or unseen else f"{label}: not found"
    if unseen:
        return f"{label}: seen after all"
    [(code, key)] = found
    if isinstance(fault, TensorFault):
        return None if code.startswith(METADATA) else f"{label}: {code}"
    families = FAMILIES.get(fault.verb)
    if not (code in families if families else code.startswith(METADATA)):
        return None if outcome.harmless else f"{label}: {code}"
    named = {fault.key, TOGETHER.get((fault.verb, fault.key))}
    return None if key is not None and key.partition(".")[2] in named else f"{label}: names {key}"


def told_twice(outcome: Outcome) -> str | None:
    """Say where one fault is more than one finding, or the end of a rule."""
    label = f"{outcome.subject}: {outcome.fault.name}"
    if outcome.crashed:
        return f"{label}: {outcome.crashed}"
    return f"{label}: {outcome.findings}" if len(outcome.findings) > 1 else None


def matrix(found: list[Outcome]) -> dict[str, tuple[int, int]]:
    """Return kind of fault -> how many files told it, and how many had it and were harmed."""
    told, had = Counter[str](), Counter[str]()
    for outcome in found:
        name = outcome.fault.name
        told[name] += bool(outcome.findings)
        had[name] += bool(outcome.findings) or not outcome.harmless
    return {name: (told[name], had[name]) for name in sorted(had)}

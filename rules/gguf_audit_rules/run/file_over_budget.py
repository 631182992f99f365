"""The file is larger than the policy allows.

## What it does
Adds up the bytes of a model's files, all shards of a set, and compares them with `file-size`
under `[budget]` of the policy.

## Why it matters
Weights are mapped or copied whole: what doesn't fit is read again from disk for every
token, or not at all.

## Fix
Take a smaller quantization, or allow more.

## Authority
The policy.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.run._sizes import told_bytes


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit where all files together are over their budget."""
    allowed = None if settings.policy is None else settings.policy.budget.file_bytes
    size = sum(file.size_bytes for file in model.gguf.files)
    if allowed is None or size <= allowed:
        return
    files = len(model.gguf.files)
    yield Hit(
        message=(
            f"needs at most {told_bytes(allowed)}, has {told_bytes(size)}"
            + (f" in {files} files" if files > 1 else "")
        ),
        where=Where(),
        expected=allowed,
        actual=size,
        unit="byte",
        level=Severity.ERROR,
    )


RULE = Rule(
    id="RUN011",
    name="file-over-budget",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.POLICY}),
    authority="the policy",
)

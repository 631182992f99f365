"""The file isn't the one that the policy pins.

## What it does
Computes the sha256 of each file that `[hashes]` of the policy names and compares. Only these
files are read whole; of all others the header is read, as ever.

## Why it matters
A pin says that this very file was looked at and found good. Other bytes under its name are
an upload that replaced it, a broken download, or somebody's doing.

## Fix
Fetch the pinned file again; where the new one is meant, audit it and pin its hash.

## Authority
The policy.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Replace, Rule, Severity
from gguf_audit.where import Where


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit for each file that has another hash than it is pinned to."""
    if settings.policy is None:
        return
    for file, sha256 in model.digests.items():
        pinned = settings.policy.hash_of(file)
        if pinned is None or pinned == sha256:
            continue
        yield Hit(
            message=f"needs the file with sha256 {pinned}, has {sha256}",
            where=Where(file=file),
            expected=pinned,
            actual=sha256,
            level=Severity.ERROR,
            repair=Replace(),
        )


RULE = Rule(
    id="PKG012",
    name="hash-differs",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.POLICY}),
    authority="the policy",
)

"""The architecture isn't one that the policy allows.

## What it does
Compares `general.architecture` with `architectures` under `[allow]` of the policy. A projector
is `clip`, an adapter has the architecture of its model; a file without the key is left to the
rules on structure.

## Why it matters
A fleet is tested with some architectures. Another one may need a newer runtime, other options
or more memory, and its code in the runtime is code that nobody here has looked at.

## Fix
Test it and allow it, or take another model.

## Authority
GGUF specification, `general.architecture`; the list is the policy's.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

_KEY = "general.architecture"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit for an architecture that isn't on the list."""
    allowed = None if settings.policy is None else settings.policy.architectures
    says = model.gguf.architecture
    if allowed is None or says is None or says in allowed:
        return
    yield Hit(
        message=(
            f"needs an architecture out of {', '.join(allowed) or 'an empty list'}, {_KEY} is {says!r}"
        ),
        where=Where(key=_KEY),
        expected=list(allowed),
        actual=says,
        level=Severity.ERROR,
    )


RULE = Rule(
    id="PKG011",
    name="architecture-not-allowed",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.POLICY}),
    authority="GGUF specification; the policy",
)

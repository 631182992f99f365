"""The licence isn't one that the policy allows.

## What it does
Compares `general.license` (and `general.license.name`, which stands beside `other`) with
`licenses` under `[allow]` of the policy, whatever the case of their letters. A file that
names none isn't allowed either.

## Why it matters
A licence decides who may serve a model and for what. What has none, or another one, needs
somebody's decision before it is used.

## Fix
Allow the licence, or take another model. Where the key alone is missing and the licence is
known, convert again with the model card beside the checkpoint, or suppress this finding with
where the licence was read as its reason.

## Authority
gguf-py `gguf/constants.py: Keys.General.LICENSE`; the list is the policy's.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, Need, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

_KEY = "general.license"
_NAME = "general.license.name"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit for a licence that isn't on the list."""
    allowed = None if settings.policy is None else settings.policy.licenses
    if allowed is None:
        return
    says = model.gguf.string(_KEY)
    named = {each.casefold() for each in (says, model.gguf.string(_NAME)) if each is not None}
    if named & {each.casefold() for each in allowed}:
        return
    has = f"is {says!r}" if says is not None else "is absent"
    yield Hit(
        message=f"needs a licence out of {', '.join(allowed) or 'an empty list'}, {_KEY} {has}",
        where=Where(key=_KEY),
        expected=list(allowed),
        actual=says,
        level=Severity.ERROR,
    )


RULE = Rule(
    id="PKG010",
    name="licence-not-allowed",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.POLICY}),
    authority="gguf-py gguf/constants.py Keys.General.LICENSE; the policy",
)

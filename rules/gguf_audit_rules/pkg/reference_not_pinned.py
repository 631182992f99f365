"""The file was held against another reference than the policy pins.

## What it does
Compares the reference that was used with what `[references]` of the policy names for the
file: id, and revision if that is a commit. They differ where `--against` names another one.

## Why it matters
A file may be a right conversion of something else: of an older revision, of a checkpoint of
somebody's own. The team has pinned what it has to be made of.

## Fix
Leave `--against` out, or change the pin.

## Authority
The policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.evidence import Conversion, Settings
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit.where import Where

_COMMIT = re.compile(r"[0-9a-f]{40}")


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit where the reference isn't what the policy pins."""
    file = conversion.model.gguf.name
    pinned = None if settings.policy is None else settings.policy.reference_of(file)
    if pinned is None or pinned == "auto":
        return
    used = conversion.checkpoint
    id_, _, revision = pinned.removeprefix("hf://").partition("@")
    same = used.id in (pinned, id_)
    if same and (not _COMMIT.fullmatch(revision) or revision == used.revision):
        return
    has = used.id if used.revision is None else f"{used.id}@{used.revision}"
    yield Hit(
        message=f"needs the reference {pinned}, was held against {has}",
        where=Where(),
        expected=pinned,
        actual=has,
        level=Severity.WARNING,
    )


RULE = Rule(
    id="PKG013",
    name="reference-not-pinned",
    levels=(Severity.WARNING,),
    check=OnConversion(check),
    needs=frozenset({Need.POLICY, Need.REFERENCE}),
    any_reference=True,
    authority="the policy",
)

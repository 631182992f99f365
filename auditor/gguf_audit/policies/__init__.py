"""What a team demands of every file, and what it has agreed to live with.

Only values: ``reading`` makes them of a TOML file. Nobody imports this package unless a
policy, a profile or a budget is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from pathlib import PurePosixPath

from msgspec import Struct, field

__all__ = ["NO_BUDGET", "Budget", "Policy", "PolicyError", "Suppression", "matches"]


class PolicyError(ValueError):
    """A policy that can't be read as it is written; the message names file and line."""


class Budget(Struct, frozen=True, kw_only=True):
    """What a model may take; ``None`` where nobody set a bound."""

    #: Bytes of cache, as llama.cpp keeps it for one sequence in f16.
    cache_bytes: int | None = None
    #: At this context; ``None`` is the training length, which llama.cpp takes as well.
    context_tokens: int | None = None
    #: All files of one model together.
    file_bytes: int | None = None
    #: A tensor type or a quantization, and the bits per weight that layers then have.
    quantization: str | None = None
    least_bits: Fraction | None = None


NO_BUDGET = Budget()


class Suppression(Struct, frozen=True, kw_only=True):
    """A finding that somebody has accepted, why, and until when."""

    #: As the policy spells it: a code or a name.
    rule: str
    #: Pattern of the file.
    file: str
    key: str | None = None
    fingerprint: str | None = None
    reason: str
    #: The last day on which it counts.
    expires: date


class Policy(Struct, frozen=True, kw_only=True):
    """Demands and defaults; what is empty or ``None`` says nothing."""

    #: Where it stands, ``None`` for one that the command line and a profile make.
    file: str | None = None
    profile: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    require: tuple[str, ...] = ()
    #: Code, family or name -> level; a later one wins.
    severity: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Allowed licences and architectures; ``None`` allows all.
    licenses: tuple[str, ...] | None = None
    architectures: tuple[str, ...] | None = None
    #: Files, or the card beside them, have to name a licence and what they were made of.
    provenance: bool = False
    budget: Budget = NO_BUDGET
    #: Pattern -> what its files are held against; the first that matches counts.
    references: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Pattern -> sha256 of the file, in hex.
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    suppressions: tuple[Suppression, ...] = ()

    def over(self, base: Policy) -> Policy:
        """Return both as one, this one being the stronger.

        Tables grow together; a list or a single value replaces the base's, but for
        ``require`` and ``suppress``, which add up.
        """
        mine, theirs = self.budget, base.budget
        return Policy(
            file=self.file or base.file,
            profile=self.profile or base.profile,
            select=self.select or base.select,
            ignore=self.ignore or base.ignore,
            fail_on=self.fail_on or base.fail_on,
            require=tuple(dict.fromkeys((*base.require, *self.require))),
            severity={**_without(base.severity, self.severity), **self.severity},
            licenses=base.licenses if self.licenses is None else self.licenses,
            architectures=base.architectures if self.architectures is None else self.architectures,
            provenance=self.provenance or base.provenance,
            budget=Budget(
                cache_bytes=_first(mine.cache_bytes, theirs.cache_bytes),
                context_tokens=_first(mine.context_tokens, theirs.context_tokens),
                file_bytes=_first(mine.file_bytes, theirs.file_bytes),
                quantization=mine.quantization or theirs.quantization,
                least_bits=mine.least_bits or theirs.least_bits,
            ),
            references={**self.references, **_without(base.references, self.references)},
            hashes={**self.hashes, **_without(base.hashes, self.hashes)},
            suppressions=(*self.suppressions, *base.suppressions),
        )

    def reference_of(self, target: str) -> str | None:
        """Return what a target is to be held against, ``None`` where nothing is said."""
        for pattern, reference in self.references.items():
            if matches(pattern, target):
                return reference
        return None

    def hash_of(self, file: str) -> str | None:
        """Return the sha256 that a file is pinned to, ``None`` where it isn't."""
        for pattern, sha256 in self.hashes.items():
            if matches(pattern, file):
                return sha256
        return None


def matches(pattern: str, file: str) -> bool:
    """Tell whether a pattern means a file: part by part from the right.

    ``*.gguf`` means every file anywhere, ``models/*.gguf`` those whose folder is called
    so. ``*`` stays within one part. Of ``owner/repo:file.gguf`` the colon parts as well.
    """
    path = PurePosixPath(file.replace("\\", "/"))
    if path.match(pattern):
        return True
    return ":" in path.name and PurePosixPath(file.replace(":", "/")).match(pattern)


def _first(mine: int | None, theirs: int | None) -> int | None:
    return theirs if mine is None else mine


def _without(base: Mapping[str, str], mine: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in base.items() if key not in mine}

"""What an installed runtime was seen to do with a file, beside what we say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, assert_never

from msgspec import Struct

__all__ = ["Allocated", "Declined", "Outcome", "Probe", "Unmeasured"]


class Allocated(Struct, frozen=True, kw_only=True):
    """It made a context whose caches take this many bytes."""

    bytes: int
    #: Its own log lines about them.
    caches: tuple[str, ...] = ()


class Declined(Struct, frozen=True, kw_only=True):
    """It wouldn't load the model or make the context, or died of it."""

    #: Its own words, in one line.
    message: str
    #: As in ``errors.Refused``.
    kind: Literal["refused", "aborts"] = "refused"
    #: What it was about to do.
    during: Literal["load", "context"] = "load"


class Unmeasured(Struct, frozen=True):
    """We could not see: a limit of ours, or a runtime we don't know how to ask."""

    reason: str


Outcome = Allocated | Declined | Unmeasured


class Probe(Struct, frozen=True, kw_only=True):
    """What one installed runtime did with one model."""

    #: Name, version and where it came from.
    runtime: str
    #: Context length in tokens -> what happened; one sequence, f16, windows not full.
    outcomes: Mapping[int, Outcome]

    def to_dict(self) -> dict[str, object]:
        """Return the probe in the shape of the JSON report."""
        runs = [{"tokens": tokens, **_told(outcome)} for tokens, outcome in self.outcomes.items()]
        return {"runtime": self.runtime, "runs": runs}


def _told(outcome: Outcome) -> dict[str, object]:
    match outcome:
        case Allocated():
            return {"bytes": outcome.bytes, "kind": "allocated", "message": None}
        case Declined():
            return {"bytes": None, "kind": outcome.kind, "message": outcome.message}
        case Unmeasured():
            return {"bytes": None, "kind": "unmeasured", "message": outcome.reason}
        case _:
            assert_never(outcome)

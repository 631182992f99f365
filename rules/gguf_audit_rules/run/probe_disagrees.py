"""The installed llama.cpp does something else with the file than we say.

## What it does
With `--probe`, loads the file's header in the llama.cpp that is installed beside
gguf-audit, in a process of its own and without tensor data, makes one context per length,
and compares: whether it loads, and how many bytes its caches take.

## Why it matters
What we say is what one build was measured to do. Where the installed one refuses the file
or takes other bytes, whoever runs it will see that and not what we say.

## Fix
Bytes that differ are a change between builds, or a mistake of ours: report it with both
figures. A file that doesn't load needs what llama.cpp's own message says.

## Authority
The installed llama.cpp, whose version the message names: `llama_model_load_from_file` with
`no_alloc`, `llama_init_from_model` and `llama_get_memory_breakdown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import assert_never

from gguf_audit.errors import Refused
from gguf_audit.evidence import Model, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, NoEvidence, OnModel, Outcome, Rule, Severity
from gguf_audit.runtime import llama_cpp
from gguf_audit.runtime.measured import Allocated, Declined, Probe, Unmeasured
from gguf_audit.where import Where

Ours = int | Refused


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit per kind of disagreement, and what could not be seen."""
    del settings
    probe = model.probe
    if isinstance(probe, Absent):
        yield NoEvidence(probe.reason)
        return
    if isinstance(model.implied, Absent):
        yield NoEvidence(f"nothing to compare with {probe.runtime}: {model.implied.reason}")
        return
    declined: dict[int, Declined] = {}
    accepted: dict[int, Refused] = {}
    different: dict[int, tuple[int, int]] = {}
    unseen: dict[str, None] = {}
    for tokens, outcome in probe.outcomes.items():
        ours = _ours(model, tokens)
        match outcome:
            case Unmeasured():
                unseen[outcome.reason] = None
            case Declined():
                if not isinstance(ours, Refused):
                    declined[tokens] = outcome
            case Allocated():
                if isinstance(ours, Refused):
                    accepted[tokens] = ours
                elif ours != outcome.bytes:
                    different[tokens] = (ours, outcome.bytes)
            case _:
                assert_never(outcome)
    yield from _declined(probe, declined)
    yield from _accepted(probe, accepted)
    yield from _different(probe, different)
    for reason in unseen:
        yield NoEvidence(reason, kind="limit")


def _ours(model: Model, tokens: int) -> Ours:
    if isinstance(model.implied, Refused):
        return model.implied
    try:
        return llama_cpp.plan(model.fields, context=tokens).total_bytes
    except Refused as refused:
        return refused


# Several lengths of one kind have one cause, so the first is told.


def _declined(probe: Probe, found: dict[int, Declined]) -> Iterator[Hit]:
    for tokens, outcome in islice(found.items(), 1):
        verb = "dies" if outcome.kind == "aborts" else "refuses"
        what = {
            "load": "loading the file" if verb == "dies" else "to load the file",
            "context": f"{'making' if verb == 'dies' else 'to make'} a context of {tokens} tokens",
        }[outcome.during]
        yield Hit(
            message=f"{probe.runtime} {verb} {what}: {outcome.message}",
            where=Where(),
            expected="a file that it runs",
            actual=outcome.kind,
            level=Severity.ERROR,
        )


def _accepted(probe: Probe, found: dict[int, Refused]) -> Iterator[Hit]:
    for tokens, refused in islice(found.items(), 1):
        yield Hit(
            message=f"{probe.runtime} makes a context of {tokens} tokens, we say that llama.cpp "
            f"doesn't: {refused.message}; another version, or a mistake of ours",
            where=Where(),
            expected=refused.kind,
            actual="a context",
            level=Severity.WARNING,
        )


def _different(probe: Probe, found: dict[int, tuple[int, int]]) -> Iterator[Hit]:
    for tokens, (ours, theirs) in islice(found.items(), 1):
        yield Hit(
            message=f"we say {ours:,} bytes of cache at {tokens} tokens, {probe.runtime} takes "
            f"{theirs:,}; another version, or a mistake of ours",
            where=Where(),
            expected={f"{length} tokens": pair[0] for length, pair in found.items()},
            actual={f"{length} tokens": pair[1] for length, pair in found.items()},
            unit="byte",
            level=Severity.INFO,
        )


RULE = Rule(
    id="RUN001",
    name="probe-disagrees",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnModel(check),
    needs=frozenset({Need.PROBE}),
    # They say why the installed one refuses it as well.
    defers_to=("ARCH007", "TOK007", "TOK008", "TOK021"),
    authority="the installed llama.cpp: llama_init_from_model, llama_get_memory_breakdown",
)

"""What an installed llama.cpp did with a model, in the text report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gguf_audit.report.cache import mebibytes
from gguf_audit.report.style import Detail, Style
from gguf_audit.runtime.measured import Allocated, Declined, Outcome, Unmeasured
from gguf_audit.verdict import SubjectReport

__all__ = ["probe_lines"]


def probe_lines(subject: SubjectReport, style: Style) -> Iterator[str]:
    """Yield who was asked and what it took; where it disagrees, a finding tells more."""
    probe = subject.probe
    if probe is None or style.detail is Detail.VERDICT:
        return
    took: dict[str, list[str]] = {}
    for tokens, outcome in probe.outcomes.items():
        took.setdefault(_told(outcome), []).append(f"{tokens:,}")
    says = [f"{what} at {' and '.join(lengths)} tokens" for what, lengths in took.items()]
    text = f"{style.safe(probe.runtime)}: {', '.join(says)}"
    yield from style.field("probed", text)


def _told(outcome: Outcome) -> str:
    match outcome:
        case Allocated():
            return f"{mebibytes(outcome.bytes)} MiB"
        case Declined():
            return "dies" if outcome.kind == "aborts" else "refuses"
        case Unmeasured():
            return "not seen"
        case _:
            assert_never(outcome)

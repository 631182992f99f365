"""What rules about the safety of templates have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gguf_audit.chat import QUESTION, SYSTEM, Analysis, Chat, Exceeded, Suspicion
from gguf_audit.rule import Hit, NoEvidence, Outcome, Severity
from gguf_audit_rules._chat import analysed, limits, place

__all__ = ["ALWAYS_OWN", "NEVER_PRINTED", "REPLACED", "alterations", "hits", "told", "untold"]

NEVER_PRINTED = "no prompt has the text of the user's message"
REPLACED = "the system message is left out, and there is another text instead"
#: So are the templates of Phi-4-reasoning.
ALWAYS_OWN = "the system message is left out, and every prompt has the template's own text"
#: Letters of a text of the template's own that could be instructions.
LETTERS = 20


def hits(
    chat: Chat,
    kinds: Collection[str],
    *,
    needs: str,
    level: Severity = Severity.ERROR,
    mild: Severity = Severity.WARNING,
) -> Iterator[Outcome]:
    """Yield one hit for each template with a suspicion of these kinds, and every limit.

    ``needs`` begins the message; ``mild`` is the level where no suspicion is a grave one.
    """
    yield from untold(chat)
    for template, analysis in analysed(chat):
        found = [each for each in analysis.suspicions if each.kind in kinds]
        if found:
            grave = any(each.grave for each in found)
            yield Hit(
                message=f"{needs}, {template.place} has {told(found)}",
                where=place(template),
                actual=[each.what for each in found],
                level=level if grave else mild,
            )


def untold(chat: Chat) -> Iterator[NoEvidence]:
    """Yield why a template couldn't be searched: only parsing is needed for that."""
    yield from (each for each in limits(chat) if each.kind != "limit")
    for template, analysis in analysed(chat):
        fault = analysis.fault
        if isinstance(fault, Exceeded) and not fault.certain:
            reason = f"{template.place} can't be looked at: {fault.reason}"
            yield NoEvidence(reason, kind="limit")


def told(found: list[Suspicion]) -> str:
    """Say what was found, the gravest first."""
    first = max(found, key=lambda each: each.grave)
    rest = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    line = f" in line {first.line}" if first.line else ""
    return f"{first.what}{line}{rest}"


def alterations(analysis: Analysis) -> Iterator[tuple[str, Severity]]:
    """Yield what a template makes of messages that it is given, and how bad that is."""
    question = analysis.text("a question")
    if question is not None and QUESTION not in question and "messages" in analysis.variables:
        yield NEVER_PRINTED, Severity.ERROR
    system = analysis.text("a system message")
    if question is None or system is None or SYSTEM in system or QUESTION not in system:
        return
    own = system.partition(QUESTION)[0]
    if sum(letter.isalpha() for letter in own) >= LETTERS and " " in own.strip():
        always = own == question.partition(QUESTION)[0]
        # Who gives orders that nobody sees, and takes none, is no Phi-4-reasoning.
        always = always and all(each.kind != "instructs" for each in analysis.suspicions)
        yield (ALWAYS_OWN, Severity.WARNING) if always else (REPLACED, Severity.ERROR)

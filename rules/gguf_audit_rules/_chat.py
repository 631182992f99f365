"""What rules about chat templates have in common."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from gguf_audit.chat import DEFAULT, Analysis, Chat, ChatTemplate, Exceeded
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.rule import NoEvidence
from gguf_audit.where import Where

__all__ = [
    "analysed",
    "chat_of",
    "excerpt",
    "label",
    "leading",
    "limits",
    "place",
    "shown",
    "unspaced",
]

#: Lines of a difference that are shown, and characters of each.
LINES, CHARACTERS = 4, 60


def chat_of(chat: Chat | Absent) -> Chat:
    """Return the templates; the engine asks no rule that needs them where they are absent."""
    return Chat() if isinstance(chat, Absent) else chat


def analysed(chat: Chat, name: str | None = None) -> Iterator[tuple[ChatTemplate, Analysis]]:
    """Yield the templates that could be looked at; of one name only, if one is given."""
    for template in chat.templates:
        if not isinstance(template.analysis, Absent) and name in (None, template.name):
            yield template, template.analysis


def limits(chat: Chat, name: str | None = None) -> Iterator[NoEvidence]:
    """Yield why a template wasn't looked at, or not for as long as it takes."""
    for template in chat.templates:
        if name not in (None, template.name):
            continue
        match template.analysis:
            case Absent(reason):
                yield NoEvidence(reason)
            case Analysis(exceeded=Exceeded(reason, certain=False)):
                yield NoEvidence(f"{template.place} can't be looked at: {reason}", kind="limit")
            case _:
                pass


def place(template: ChatTemplate) -> Where:
    """Return where a file has a template."""
    return Where(key=template.place, offset=template.offset)


def label(template: ChatTemplate) -> str:
    """Return what a message calls a template of a checkpoint."""
    return template.place if template.name == DEFAULT else f"{template.name} in {template.place}"


def leading(text: str | None, token: str) -> int:
    """Return how often a text begins with a token."""
    count = 0
    while token and text is not None and text.startswith(token, count * len(token)):
        count += 1
    return count


def shown(text: str) -> str:
    """Return text in quotes, cut to what a message has room for."""
    most = LIMITS.shown_characters
    return repr(text if len(text) <= most else f"{text[:most]}...")


def unspaced(text: str) -> str:
    """Return text without spaces and line ends."""
    return "".join(text.split())


def excerpt(expected: str, actual: str) -> str:
    """Return the first lines that differ: ``-`` expected, ``+`` found."""
    differing = [
        line[0] + _cut(line[1:])
        for line in difflib.ndiff(_lines(expected), _lines(actual))
        if line[:2] in ("- ", "+ ")
    ]
    rest = len(differing) - LINES
    told = " | ".join(differing[:LINES])
    return f"{told} (and {rest} more lines)" if rest > 0 else told


def _lines(text: str) -> list[str]:
    # A prompt without lines is told apart by its markers.
    parted = re.sub(r"(<\|?[^<>\s]+>)", r"\n\1", text).splitlines()
    return [line for line in parted if line]


def _cut(line: str) -> str:
    text = line.strip()
    return repr(text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}...")

"""The chat template makes other prompts than the reference's does.

## What it does
Renders both templates with the file's own tokens and compares the prompts, never the
templates' text: a question, with and without a prompt to answer, a system message, several
turns, an answer; then tools, a tool call and thinking. Markers that the reference doesn't
print are those of another template: an error. Another text of a plain conversation is a
warning, as are tools that no longer reach the prompt. Only spaces, a date, an opened thought,
or tools and thoughts written differently are worth knowing: many publishers repair those, and
so is a conversation that only the file's template can render.

Where a checkpoint has several templates of one name, any of them is right.

## Why it matters
A prompt that the model wasn't trained on gives worse answers, and none of them says so.

## Fix
`gguf-new-metadata --chat-template-file chat_template.jinja` writes a copy with the
reference's template.

## Authority
transformers 5.24, `apply_chat_template` of the reference; llama.cpp b11434,
`common/chat.cpp: common_chat_template_direct_apply_impl`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from gguf_audit.chat import (
    CONVERSATIONS,
    DEFAULT,
    PLAIN,
    TOOL,
    Analysis,
    ChatTemplate,
    Exceeded,
    Rendered,
    Rendering,
)
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnConversion,
    Outcome,
    Rule,
    SetChatTemplate,
    Severity,
)
from gguf_audit_rules._chat import analysed, chat_of, excerpt, label, place, unspaced

MARKER = re.compile(r"<[^<>\s]{1,40}>|\[[^\[\]\s]{1,40}\]")
DATE = re.compile(
    r"\b\d{1,2} [A-Z][a-z]{2,8} \d{4}\b|\b\d{4}-\d\d-\d\d\b|\b[A-Z][a-z]{2,8} \d{1,2}, \d{4}\b"
)
#: An opened and perhaps closed thought at the end of a prompt.
THOUGHT = re.compile(r"<think>\s*(?:</think>\s*)?$")


class Difference(Struct, frozen=True):
    """One conversation of which the two make different prompts."""

    conversation: str
    level: Severity
    #: ``needs ..., makes ...``
    message: str


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for the worst difference."""
    del settings
    expected = list(analysed(chat_of(conversion.expected_chat), DEFAULT))
    for template, analysis in analysed(chat_of(conversion.model.chat), DEFAULT):
        if not expected or any(_same(template, each) for each, _ in expected):
            return
        if analysis.fault is not None:
            return
        compared = [(each, list(_differences(other, analysis))) for each, other in expected]
        nearest, found = min(compared, key=lambda pair: (_worst(pair[1]), len(pair[1])))
        limit = next((each for each in found if isinstance(each, NoEvidence)), None)
        if limit is not None:
            yield limit
            return
        told = [each for each in found if isinstance(each, Difference)]
        if told:
            yield _hit(template, nearest, told)


def _hit(template: ChatTemplate, expected: ChatTemplate, found: list[Difference]) -> Hit:
    worst = max(found, key=lambda each: each.level.rank)
    others = [each.conversation for each in found if each is not worst]
    return Hit(
        message=f"{worst.message} (compared with {label(expected)})",
        where=place(template),
        expected=expected.text,
        actual=template.text,
        level=worst.level,
        repair=SetChatTemplate(template=expected.text),
        consequences=(f"so does the prompt for {', '.join(others)}",) if others else (),
    )


def _worst(found: list[Difference | NoEvidence]) -> int:
    return max((each.level.rank for each in found if isinstance(each, Difference)), default=0)


def _same(one: ChatTemplate, other: ChatTemplate) -> bool:
    return one.text.replace("\r\n", "\n").strip() == other.text.replace("\r\n", "\n").strip()


def _differences(expected: Analysis, actual: Analysis) -> Iterator[Difference | NoEvidence]:
    for name in CONVERSATIONS:
        wanted, found = expected.renderings.get(name), actual.renderings.get(name)
        for each in (wanted, found):
            if isinstance(each, Exceeded):
                yield NoEvidence(f"a prompt for {name} can't be made: {each.reason}", kind="limit")
                return
        level, message = _compared(name, wanted, found)
        if level is not None:
            yield Difference(name, level, message)


def _compared(
    name: str, wanted: Rendering | None, found: Rendering | None
) -> tuple[Severity | None, str]:
    plain = name in PLAIN
    match wanted, found:
        case Rendered(expected), Rendered(actual):
            level = _level(name, expected, actual)
            return (
                level,
                f"needs the reference's prompt for {name}, differs: {_told(expected, actual)}",
            )
        case Rendered(), _:
            level = Severity.ERROR if plain else Severity.WARNING
            return level, f"needs a prompt for {name} as the reference's template makes, makes none"
        case _, Rendered():
            return Severity.INFO, f"makes a prompt for {name}, the reference's template makes none"
        case _:
            return None, ""


def _told(expected: str, actual: str) -> str:
    if unspaced(expected) == unspaced(actual):
        return "only in spaces and line ends"
    return excerpt(expected, actual)


def _level(name: str, expected: str, actual: str) -> Severity | None:
    if expected == actual:
        return None
    if _normal(expected) == _normal(actual):
        return Severity.INFO
    if name not in PLAIN:
        lost = "tool" in name and TOOL in expected and TOOL not in actual
        return Severity.WARNING if lost else Severity.INFO
    wanted, found = set(MARKER.findall(expected)), set(MARKER.findall(actual))
    shared, both = len(wanted & found), len(wanted | found)
    return Severity.ERROR if 2 * shared < both else Severity.WARNING


def _normal(text: str) -> str:
    """Return a prompt without what changes from day to day, and what publishers repair."""
    return unspaced(DATE.sub("", THOUGHT.sub("", text)))


RULE = Rule(
    id="TPL005",
    name="template-changed",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE, Need.RENDER}),
    defers_to=("SEC", "TOK025", "TPL001", "TPL003", "TPL004", "TPL006", "TPL007"),
    authority="transformers 5.24 apply_chat_template",
)

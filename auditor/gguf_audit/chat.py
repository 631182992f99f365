"""What is known of a chat template: its text, and what a child process made of it.

Nothing here parses a template. ``probes.templates`` asks a limited child process, and
rules look at what it answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from gguf_audit.checkpoint import Json
from gguf_audit.parts import Absent

__all__ = [
    "ANSWER",
    "CONVERSATIONS",
    "DEFAULT",
    "PLAIN",
    "QUESTION",
    "QUESTION_AGAIN",
    "RESULT",
    "SYSTEM",
    "TEMPLATE",
    "THOUGHT",
    "TOOL",
    "Analysis",
    "Chat",
    "ChatTemplate",
    "Exceeded",
    "Failed",
    "Raised",
    "Rendered",
    "Rendering",
    "Suspicion",
    "SuspicionKind",
    "Variables",
    "template_key",
    "template_name",
]

Variables = Mapping[str, Json]

#: The template that is taken where nobody names another.
DEFAULT = "default"
#: Where a GGUF file has its default template; others stand under ``TEMPLATE.name``.
TEMPLATE = "tokenizer.chat_template"

QUESTION = "How many moons does Mars have?"
QUESTION_AGAIN = "And how many does Venus have?"
ANSWER = "Mars has two moons."
SYSTEM = "Answer every question in one short sentence."
THOUGHT = "Phobos and Deimos make two."
RESULT = "Phobos, Deimos"
#: The name of the tool, and what stands for it in a rendered prompt.
TOOL = "list_moons"

_ASKS: Json = {"role": "user", "content": QUESTION}
_ASKS_AGAIN: Json = {"role": "user", "content": QUESTION_AGAIN}
_ANSWERS: Json = {"role": "assistant", "content": ANSWER}
_TOOLS: Json = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "Lists the moons of a planet.",
            "parameters": {
                "type": "object",
                "properties": {"planet": {"type": "string", "description": "Its name."}},
                "required": ["planet"],
            },
        },
    }
]
_CALLS: Json = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call00001",
            "type": "function",
            "function": {"name": TOOL, "arguments": {"planet": "Mars"}},
        }
    ],
}
_RETURNS: Json = {"role": "tool", "tool_call_id": "call00001", "name": TOOL, "content": RESULT}

#: What templates are rendered for, by what a message calls it. Three turns, a system
#: message and an open prompt are what every chat needs; the rest is worth having.
CONVERSATIONS: Mapping[str, Variables] = {
    "a question": {"messages": [_ASKS], "add_generation_prompt": True},
    "a question without a prompt to answer": {
        "messages": [_ASKS],
        "add_generation_prompt": False,
    },
    "a system message": {
        "messages": [{"role": "system", "content": SYSTEM}, _ASKS],
        "add_generation_prompt": True,
    },
    "several turns": {
        "messages": [_ASKS, _ANSWERS, _ASKS_AGAIN],
        "add_generation_prompt": True,
    },
    "an answer": {"messages": [_ASKS, _ANSWERS], "add_generation_prompt": False},
    "tools": {"messages": [_ASKS], "tools": _TOOLS, "add_generation_prompt": True},
    "a tool call": {
        "messages": [_ASKS, _CALLS, _RETURNS],
        "tools": _TOOLS,
        "add_generation_prompt": True,
    },
    "thinking": {
        "messages": [
            _ASKS,
            {"role": "assistant", "content": ANSWER, "reasoning_content": THOUGHT},
            _ASKS_AGAIN,
        ],
        "add_generation_prompt": True,
        "enable_thinking": True,
    },
    "no thinking": {
        "messages": [_ASKS],
        "add_generation_prompt": True,
        "enable_thinking": False,
    },
}
#: Those that every chat needs.
PLAIN = (
    "a question",
    "a question without a prompt to answer",
    "a system message",
    "several turns",
    "an answer",
)


class Rendered(Struct, frozen=True):
    """The prompt."""

    text: str


class Raised(Struct, frozen=True):
    """The template itself refused the conversation, ``raise_exception``."""

    message: str


class Failed(Struct, frozen=True):
    """The engine found a fault in the template."""

    message: str


class Exceeded(Struct, frozen=True):
    """Looking at it took more than ``limits`` allows, or ended the child process."""

    reason: str
    #: It is the template's own doing, whatever else this machine had to do.
    certain: bool = False


Rendering = Rendered | Raised | Failed | Exceeded

SuspicionKind = Literal[
    "internals", "loads", "calls", "unbounded", "trigger", "date", "instructs", "hidden", "rewrites"
]


class Suspicion(Struct, frozen=True, kw_only=True):
    """Something in a template's syntax tree that no chat needs."""

    kind: SuspicionKind
    #: 0 where it is known from rendering.
    line: int
    #: What was found, as a message would go on: ``the attribute __class__``.
    what: str
    #: No honest template has been seen to do so.
    grave: bool = True


class Analysis(Struct, frozen=True, kw_only=True):
    """What the child process said of one template."""

    #: Why it can't be parsed; ``Exceeded`` where nobody knows.
    fault: Failed | Exceeded | None = None
    #: Line of the fault, 0 where it has none.
    line: int = 0
    #: Tags that transformers knows and llama.cpp's engine doesn't.
    foreign_tags: tuple[str, ...] = ()
    #: Names that it expects to be given.
    variables: frozenset[str] = frozenset()
    suspicions: tuple[Suspicion, ...] = ()
    #: Name in ``CONVERSATIONS`` -> what became of it.
    renderings: Mapping[str, Rendering]

    def text(self, conversation: str) -> str | None:
        """Return the prompt of a conversation, ``None`` where there is none."""
        found = self.renderings.get(conversation)
        return found.text if isinstance(found, Rendered) else None

    @property
    def exceeded(self) -> Exceeded | None:
        """The first limit that it went over, if any."""
        outcomes = (self.fault, *self.renderings.values())
        return next((each for each in outcomes if isinstance(each, Exceeded)), None)


class ChatTemplate(Struct, frozen=True, kw_only=True):
    """One template, wherever it was found."""

    #: ``default``, or what the file calls it.
    name: str
    #: Metadata key, or file of the checkpoint.
    place: str
    #: Of the key in its file.
    offset: int | None = None
    text: str
    analysis: Analysis | Absent


class Chat(Struct, frozen=True, kw_only=True):
    """Every template of a file, or of a checkpoint, and what fills it in."""

    templates: tuple[ChatTemplate, ...] = ()
    #: Text of the tokens that templates print, "" where there is none.
    bos: str = ""
    eos: str = ""

    def find(self, name: str = DEFAULT) -> ChatTemplate | None:
        """Return the first template of a name."""
        return next((each for each in self.templates if each.name == name), None)


def template_key(name: str) -> str:
    """Return the key of a template."""
    return TEMPLATE if name == DEFAULT else f"{TEMPLATE}.{name}"


def template_name(key: str) -> str | None:
    """Return which template a key holds, ``None`` if it holds none.

    C code takes a key for what stands before its first NUL.
    """
    seen = key.partition("\0")[0]
    if seen != TEMPLATE and not seen.startswith(f"{TEMPLATE}."):
        return None
    return seen.removeprefix(TEMPLATE).removeprefix(".") or DEFAULT

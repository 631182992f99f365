"""The Jinja that chat templates are written for, as transformers sets it up."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment
from jinja2.utils import Namespace

if TYPE_CHECKING:
    from jinja2 import Template, nodes
    from jinja2.parser import Parser

__all__ = [
    "FIXED_CLOCK",
    "Answer",
    "Clock",
    "Sandbox",
    "Variables",
    "compiled",
    "environment",
    "in_parts",
    "outcome_of",
    "render",
    "renderings",
]

#: Two renderings of a template that prints the date have to be equal.
FIXED_CLOCK = dt.datetime(2026, 7, 1, 12, 0, 0)  # noqa: DTZ001 - what strftime prints
#: ``[kind, text]``
Answer = list[str]
Variables = dict[str, Any]


class RaisedError(TemplateError):
    """What ``raise_exception`` raises."""


class Generation(Extension):
    """``{% generation %}``: marks what a model is trained on, and prints it."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return what stands between the tags."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Dictionary:
    """``dict`` without the type's own attributes."""

    def __call__(self, *arguments: Any, **members: Any) -> dict[Any, Any]:
        """Make one."""
        return dict(*arguments, **members)

    def fromkeys(self, *arguments: Any) -> dict[Any, Any]:
        """Make one with these keys."""
        return dict.fromkeys(*arguments)


class TemplateNamespace(Namespace):
    """``namespace`` that keeps nothing under a private name."""

    def __init__(*arguments: Any, **members: Any) -> None:
        own, *rest = arguments
        attributes = dict(*rest, **members)
        for name in attributes:
            _private(name)
        Namespace.__init__(own, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        """Refuse a private name."""
        _private(name)
        super().__setitem__(name, value)


def _private(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace can't store {name!r}")


class Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox of transformers, which remembers what was reached for in vain."""

    def __init__(self) -> None:
        """Have the extensions of transformers."""
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
        )
        #: Attributes that lead into the interpreter, however their names came about.
        self.reached: list[str] = []
        self.clock = Clock()

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Refuse what jinja2 refuses."""
        # What would only change a list is refused too, and reaches for nothing.
        if not SandboxedEnvironment.is_safe_attribute(self, obj, attr, value):
            self.reached.append(attr)
        return super().is_safe_attribute(obj, attr, value)


def _raise_exception(message: object) -> NoReturn:
    raise RaisedError(str(message))


class Clock:
    """``strftime_now``: the time is what we say it is."""

    now = FIXED_CLOCK

    def __call__(self, form: str) -> str:
        """Return the time in this form."""
        return self.now.strftime(form)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def environment() -> Sandbox:
    """Return the environment (transformers 5.24, utils/chat_template_utils.py)."""
    made = Sandbox()
    made.filters["tojson"] = _tojson
    shared: Variables = {
        "raise_exception": _raise_exception,
        "strftime_now": made.clock,
        "dict": Dictionary(),
        "namespace": TemplateNamespace,
    }
    made.globals.update(shared)
    return made


def compiled(made: Sandbox, tree: nodes.Template) -> Template:
    """Return what can be rendered; jinja2 raises what it likes."""
    code = made.compile(tree)
    return made.template_class.from_code(made, code, made.make_globals(None), None)


def renderings(
    template: Template,
    conversations: Mapping[str, Variables],
    *,
    shared: Variables,
    most: int,
) -> Iterator[tuple[str, Answer]]:
    """Yield name and outcome of every conversation, each as soon as it is known.

    ``most`` bounds the characters of one prompt. Where the first conversation loses its
    text, content is given in parts instead of as a string, as for a model that sees.
    """
    as_parts = False
    for index, (name, variables) in enumerate(conversations.items()):
        answer = render(template, {**shared, **variables}, most=most)
        if index == 0 and _lost(answer, variables):
            parted = render(template, {**shared, **in_parts(variables)}, most=most)
            as_parts = not _lost(parted, variables) and _PART not in parted[1]
            answer = parted if as_parts else answer
        elif as_parts:
            answer = render(template, {**shared, **in_parts(variables)}, most=most)
        yield name, answer


def render(template: Template, variables: Variables, *, most: int) -> Answer:
    """Return the prompt, or what kept us from it."""
    text: list[str] = []
    length = 0
    try:
        # The sandbox is immutable: nothing changes what the next one is given.
        for piece in template.generate(**variables):
            length += len(piece)
            if length > most:
                return ["exceeded", f"the prompt has over {most} characters"]
            text.append(piece)
    except Exception as error:
        return outcome_of(error)
    return ["text", "".join(text)]


def outcome_of(error: Exception) -> Answer:
    """Say what an exception means."""
    match error:
        case RaisedError():
            return ["raised", str(error)]
        case MemoryError():
            return ["exceeded", "it takes more memory than it is given"]
        case RecursionError():
            return ["exceeded", "it is nested too deeply, or calls itself without an end"]
        case _:
            return ["failed", f"{type(error).__name__}: {error}"]


#: How Python shows a part: who prints that has taken a list for a text.
_PART = "{'type': 'text'"


def _lost(answer: Answer, variables: Variables) -> bool:
    """Tell whether the last message's text isn't in the prompt."""
    return answer[0] != "text" or variables["messages"][-1]["content"] not in answer[1]


def in_parts(variables: Variables) -> Variables:
    """Return a conversation whose contents are lists of parts."""
    return {**variables, "messages": [_in_parts(each) for each in variables["messages"]]}


def _in_parts(message: Variables) -> Variables:
    if not message.get("content"):
        return message
    return {**message, "content": [{"type": "text", "text": message["content"]}]}

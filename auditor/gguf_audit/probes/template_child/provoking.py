"""What a template does only when it is provoked: by its own words in a message, by the date.

However a condition is written, it has to name what it waits for. So a question is asked once
more with every word in it that the template holds, and once more on another day: a prompt
that then has text of the template's own, or the message in other words, tells of it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jinja2 import nodes

from gguf_audit.probes.template_child.rendering import (
    FIXED_CLOCK,
    Clock,
    Variables,
    in_parts,
    render,
)
from gguf_audit.probes.template_child.suspicion import Found, removed, shown
from gguf_audit.probes.template_child.tree import Tree

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["provoked"]

#: Another year, month, day and day of the week.
_ANOTHER_DAY = dt.datetime(2031, 12, 25, 21, 30, 0)  # noqa: DTZ001 - what strftime prints
#: Words that people write, and addresses; markup is looked for by right.
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[ '.?!-]+[^\W\d_]+)*[?!.]*|\w+://\S+")
_YEAR = re.compile(r"20[2-9][0-9]")
_LETTERS = re.compile(r"[^\W\d_]+")
#: Bytes of letters that make a sentence of the template's own, and no date.
_MANY = 20
#: Words of one template that are tried, and years.
_MOST, _MOST_YEARS = 200, 4
_LONGEST = 100
#: Above the last day of 2099, as a number.
_NO_DATE = 21_000_000


def provoked(
    template: Template,
    tree: Tree,
    variables: Variables,
    *,
    clock: Clock,
    shared: Mapping[str, Any],
    most: int,
) -> Iterator[Found]:
    """Yield what a template does with a question of its own words, and on another day.

    ``variables`` are those of a conversation of one message.
    """
    asked = variables["messages"][0]["content"]

    def prompt(content: str, *, parts: bool) -> str | None:
        asks = {**variables, "messages": [{"role": "user", "content": content}]}
        asks = in_parts(asks) if parts else asks
        answer = render(template, {**shared, **asks}, most=most)
        return answer[1] if answer[0] == "text" else None

    for parts in (False, True):
        usual = prompt(asked, parts=parts)
        if usual is not None and asked in usual:
            break
    else:
        return
    words = [word for word in _words(tree) if word not in asked]
    if words:
        content = " ".join([asked, *words])
        # What is openly taken out is told by that; whatever else is changed isn't.
        said = (content, _without(removed(tree), content))
        found = prompt(content, parts=parts)
        kept = next((each for each in said if found is not None and each in found), None)
        if found is not None and kept is None:
            yield "rewrites", 0, "a message with words of the template comes out changed", True
        elif found and kept and (more := _more(usual, asked, found, kept)):
            yield "trigger", 0, f"a message with words of the template adds {shown(more)}", True
    for day in _days(tree) if "strftime_now" in tree.loaded else ():
        clock.now = day
        found = prompt(asked, parts=parts)
        clock.now = FIXED_CLOCK
        if found is not None and (more := _more(usual, asked, found, asked)):
            yield "date", 0, f"another day adds {shown(more)}", True
            return


def _without(words: Iterable[str], content: str) -> str:
    for word in words:
        content = content.replace(word, "")
    return content.strip()


def _days(tree: Tree) -> Iterator[dt.datetime]:
    """Yield another day, and one of each year that the template holds."""
    yield _ANOTHER_DAY
    years = {year for text in _strings(tree) for year in _YEAR.findall(text)}
    for year in sorted(years)[:_MOST_YEARS]:
        yield _ANOTHER_DAY.replace(year=int(year))


def _words(tree: Tree) -> Iterator[str]:
    """Yield the words that stand as strings in a template's expressions."""
    words = dict.fromkeys(text for text in _strings(tree) if _WORDS.fullmatch(text))
    yield from list(words)[:_MOST]


def _strings(tree: Tree) -> Iterator[str]:
    """Yield the short strings of expressions, those that are put together among them."""
    for each in tree.every:
        if isinstance(each, nodes.Const | nodes.Concat | nodes.Add):
            value = tree.fold(each)
            if isinstance(value, str) and len(value) <= _LONGEST:
                yield value.strip()
            elif isinstance(value, int) and 0 < value < _NO_DATE:
                yield str(value)


def _more(usual: str, asked: str, found: str, content: str) -> str:
    """Return the words that a prompt has besides the usual ones, "" if they say nothing."""
    known = set(_LETTERS.findall(usual.replace(asked, " ")))
    said = _LETTERS.findall(found.replace(content, " "))
    # A day and a month, 18 letters at most, are no more for being printed twice.
    more = dict.fromkeys(word for word in said if word not in known)
    return " ".join(more) if sum(len(word.encode()) for word in more) >= _MANY else ""

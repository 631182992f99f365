"""The rules that are installed, which of them are wanted, and their pages.

Rules come from the providers of the entry-point group ``gguf_audit.rules``, ours
among them. A catalogue that isn't whole is no catalogue: whatever is missing, double
or broken raises ``CatalogueError``, because an audit with fewer rules than its user
believes would call a bad file clean.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from gguf_audit.errors import CatalogueError
from gguf_audit.rule import Rule, Severity

__all__ = [
    "BUILTIN",
    "GROUP",
    "Page",
    "Provider",
    "UnknownRuleError",
    "choose",
    "families",
    "family",
    "installed",
    "levels",
    "load",
    "named",
    "page",
]

#: Entry-point group in which rule packs stand.
GROUP = "gguf_audit.rules"
#: Name of the provider without which no catalogue is whole.
BUILTIN = "builtin"

_ID = re.compile(r"[A-Z]{2,5}[0-9]{3}")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Provider(NamedTuple):
    """One pack of rules: its entry point's name, and what yields the rules."""

    name: str
    load: Callable[[], Iterable[object]]


class UnknownRuleError(ValueError):
    """A code, family or name that no installed rule answers to."""


def installed() -> list[Provider]:
    """Return the providers of every installed distribution."""
    # Importing the module costs 30 ms that ``--help`` needn't pay.
    from importlib.metadata import EntryPoint, entry_points

    def provider(point: EntryPoint) -> Provider:
        return Provider(point.name, lambda: point.load()())

    return [provider(point) for point in entry_points(group=GROUP)]


def load(providers: Iterable[Provider] | None = None) -> dict[str, Rule]:
    """Return every rule by its id, in order of ids.

    ``providers`` defaults to the installed ones. Raises CatalogueError where the
    built-in provider is missing, a provider's name, a rule's id or a rule's name is
    taken twice, or a provider fails or yields anything but well-formed rules.
    """
    sources: dict[str, Provider] = {}
    for provider in installed() if providers is None else providers:
        if provider.name in sources:
            raise CatalogueError(f"two rule providers are called {provider.name!r}")
        sources[provider.name] = provider
    if BUILTIN not in sources:
        raise CatalogueError(
            "the built-in rules are not installed: install gguf-audit itself "
            "(from a checkout: pip install -e .)"
        )
    rules: dict[str, Rule] = {}
    names: dict[str, str] = {}
    for provider in sources.values():
        for rule in _provided(provider):
            for taken, label in ((rules, rule.id), (names, rule.name)):
                if label in taken:
                    raise CatalogueError(f"two rules are called {label!r} (from {provider.name!r})")
            rules[rule.id] = rule
            names[rule.name] = rule.id
    return dict(sorted(rules.items()))


def _provided(provider: Provider) -> list[Rule]:
    try:
        provided = list(provider.load())
    except Exception as error:
        # A pack is foreign code: whatever it raises means that its rules are missing.
        what = f"{type(error).__name__}: {error}"
        raise CatalogueError(f"rule provider {provider.name!r} failed: {what}") from error
    if not provided:
        raise CatalogueError(f"rule provider {provider.name!r} has no rules")
    return [_checked(rule, provider.name) for rule in provided]


def _checked(rule: object, provider: str) -> Rule:
    if not isinstance(rule, Rule):
        raise CatalogueError(f"rule provider {provider!r} yields {type(rule).__name__}, not Rule")
    if not (_ID.fullmatch(rule.id) and _NAME.fullmatch(rule.name) and rule.levels):
        raise CatalogueError(
            f"rule {rule.id!r} of {provider!r} needs an id like KV101, a kebab-case name and levels"
        )
    return rule


def family(code: str) -> str:
    """Return the letters of a rule's id."""
    return code.rstrip("0123456789")


def choose(
    rules: Mapping[str, Rule], *, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> dict[str, Rule]:
    """Return the wanted rules: those selected (all where none is), less those ignored.

    Each item is a code (``KV101``), a family (``KV``) or a name. Raises
    UnknownRuleError where one means no rule, so that a typing error can't switch a
    check off unseen.
    """
    wanted = _ids(rules, select) if select else set(rules)
    unwanted = _ids(rules, ignore)
    return {code: rule for code, rule in rules.items() if code in wanted - unwanted}


def named(rules: Mapping[str, Rule], items: Sequence[str]) -> frozenset[str]:
    """Return the codes of the rules that items name one by one, by code or name."""
    wanted = {*items, *(item.upper() for item in items)}
    return frozenset(code for code, rule in rules.items() if {code, rule.name} & wanted)


def families(rules: Mapping[str, Rule], items: Sequence[str]) -> tuple[frozenset[str], ...]:
    """Return the codes of the rules of each family that items name."""
    codes = (frozenset(code for code in rules if family(code) == item.upper()) for item in items)
    return tuple(found for found in codes if found)


def levels(rules: Mapping[str, Rule], overrides: Sequence[str]) -> dict[str, Severity]:
    """Return the severities that ``CODE=LEVEL`` items give; a later item wins.

    Raises UnknownRuleError for a code, and ValueError for an item without a level.
    """
    found: dict[str, Severity] = {}
    for item in overrides:
        wanted, separator, level = item.partition("=")
        if not separator or level not in list(Severity):
            raise ValueError(f"{item!r} is not CODE=LEVEL; levels are error, warning and info")
        found.update(dict.fromkeys(_ids(rules, [wanted]), Severity(level)))
    return found


def _ids(rules: Mapping[str, Rule], items: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for item in items:
        code = item.upper()
        meant = {
            rule.id
            for rule in rules.values()
            if code in (rule.id, family(rule.id)) or item == rule.name
        }
        if not meant:
            raise UnknownRuleError(_unknown(rules, item))
        found |= meant
    return found


def _unknown(rules: Mapping[str, Rule], item: str) -> str:
    from difflib import get_close_matches  # only where something is wrong

    known = [*rules, *(rule.name for rule in rules.values()), *{family(code) for code in rules}]
    near = get_close_matches(item, known, n=1) or get_close_matches(item.upper(), known, n=1)
    hint = f"did you mean {near[0]}?" if near else "gguf-audit rules lists them"
    return f"no rule is called {item!r}: {hint}"


class Page(Struct, frozen=True, kw_only=True):
    """A rule's page: the docstring of its module."""

    #: One line.
    summary: str
    #: Heading -> text, in the order of the page.
    sections: Mapping[str, str]

    @property
    def why(self) -> str:
        """First sentence of ``Why it matters``, "" where there is none."""
        text = " ".join(self.sections.get("Why it matters", "").split())
        return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text, maxsplit=1)[0]


def page(rule: Rule) -> Page:
    """Return a rule's page; one without a docstring has its name for a summary."""
    module = sys.modules.get(rule.check.check.__module__)
    text = (module.__doc__ if module is not None else None) or rule.name
    head, *parts = re.split(r"^## +(.+?) *$", text.strip(), flags=re.MULTILINE)
    bodies = [part.strip() for part in parts[1::2]]
    return Page(summary=" ".join(head.split()), sections=dict(zip(parts[::2], bodies, strict=True)))

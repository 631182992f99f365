from __future__ import annotations

from collections.abc import Iterator

import pytest

import gguf_audit_rules
from gguf_audit.catalogue import (
    Page,
    Provider,
    UnknownRuleError,
    choose,
    families,
    family,
    levels,
    load,
    named,
    page,
)
from gguf_audit.errors import CatalogueError
from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import OnModel, Outcome, Rule, Severity


def silent(model: Model, settings: Settings) -> Iterator[Outcome]:
    del model, settings
    yield from ()


def rule(id: str, name: str) -> Rule:  # noqa: A002
    return Rule(
        id=id, name=name, levels=(Severity.ERROR,), check=OnModel(silent), authority="nobody"
    )


LOST = rule("KV101", "window-lost")
CHANGED = rule("KV102", "window-changed")
IDS = rule("TOK001", "ids")
BUILTIN = Provider("builtin", lambda: [IDS, CHANGED, LOST])
RULES = load([BUILTIN])


def broken() -> Iterator[object]:
    yield LOST
    raise RuntimeError("no such module")


def test_rules_come_in_order_of_ids() -> None:
    other = Provider("other", lambda: iter([rule("ABC001", "first")]))
    assert list(load([BUILTIN, other])) == ["ABC001", "KV101", "KV102", "TOK001"]


@pytest.mark.parametrize(
    ("providers", "says"),
    [
        ([], "built-in rules are not installed"),
        ([Provider("other", lambda: [LOST])], "built-in rules are not installed"),
        ([BUILTIN, Provider("builtin", list)], "two rule providers are called 'builtin'"),
        ([Provider("builtin", list)], "'builtin' has no rules"),
        ([BUILTIN, Provider("other", list)], "'other' has no rules"),
        ([Provider("builtin", broken)], "'builtin' failed: RuntimeError: no such module"),
        ([BUILTIN, Provider("other", broken)], "'other' failed: RuntimeError: no such module"),
        (
            [BUILTIN, Provider("other", lambda: [rule("KV101", "x")])],
            "two rules are called 'KV101'",
        ),
        ([BUILTIN, Provider("other", lambda: [rule("X001", "ids")])], "needs an id like"),
        (
            [BUILTIN, Provider("other", lambda: [rule("XX001", "ids")])],
            "two rules are called 'ids'",
        ),
        ([BUILTIN, Provider("other", lambda: [rule("XX001", "No Kebab")])], "needs an id like"),
        ([BUILTIN, Provider("other", lambda: ["KV101"])], "yields str, not Rule"),
    ],
)
def test_a_catalogue_that_is_not_whole_is_none(providers: list[Provider], says: str) -> None:
    with pytest.raises(CatalogueError, match=says):
        load(providers)


@pytest.mark.parametrize(
    ("select", "ignore", "left"),
    [
        ([], [], ["KV101", "KV102", "TOK001"]),
        (["KV"], [], ["KV101", "KV102"]),
        (["kv101", "ids"], [], ["KV101", "TOK001"]),
        ([], ["KV"], ["TOK001"]),
        (["KV"], ["window-lost"], ["KV102"]),
        (["KV101"], ["KV"], []),
    ],
)
def test_choose(select: list[str], ignore: list[str], left: list[str]) -> None:
    assert list(choose(RULES, select=select, ignore=ignore)) == left


def test_what_is_named_one_by_one_and_what_by_family() -> None:
    items = ["KV", "kv101", "ids", "tok"]
    assert named(RULES, items) == frozenset({"KV101", "TOK001"})
    assert families(RULES, items) == (frozenset({"KV101", "KV102"}), frozenset({"TOK001"}))


@pytest.mark.parametrize("item", ["KV1", "K", "KV999", "", "window", "KV101,KV102", "T"])
def test_what_means_no_rule_is_an_error(item: str) -> None:
    with pytest.raises(UnknownRuleError):
        choose(RULES, select=["KV101", item])
    with pytest.raises(UnknownRuleError):
        choose(RULES, ignore=[item])


def test_a_near_miss_is_named() -> None:
    with pytest.raises(UnknownRuleError, match="did you mean window-lost"):
        choose(RULES, select=["windw-lost"])
    with pytest.raises(UnknownRuleError, match=r"did you mean KV10[12]"):
        choose(RULES, select=["kv103"])


def test_later_severities_win() -> None:
    assert levels(RULES, ["KV=warning", "window-lost=info"]) == {
        "KV101": Severity.INFO,
        "KV102": Severity.WARNING,
    }


@pytest.mark.parametrize("item", ["KV101", "KV101=", "KV101=fatal", "XY=error", "=error"])
def test_what_gives_no_severity_is_an_error(item: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        levels(RULES, [item])


def test_family() -> None:
    assert family("KV101") == "KV"


def test_the_page_is_the_docstring_of_the_module() -> None:
    rules = load([Provider("builtin", gguf_audit_rules.load)])
    found = page(rules["KV103"])
    assert list(found.sections) == ["What it does", "Why it matters", "Fix", "Authority"]
    assert "\n" not in found.summary
    assert found.why.endswith(".")


def test_a_rule_without_a_page_has_its_name() -> None:
    assert page(LOST) == Page(summary="window-lost", sections={})
    assert page(LOST).why == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("One. Two.", "One."),
        ("Over\ntwo lines. Two.", "Over two lines."),
        (
            "llama.cpp b11434, i.e. now, says nothing. Two.",
            "llama.cpp b11434, i.e. now, says nothing.",
        ),
        ("`x` is lost! `y` too.", "`x` is lost!"),
        ("No stop", "No stop"),
    ],
)
def test_why_is_the_first_sentence(text: str, why: str) -> None:
    assert Page(summary="s", sections={"Why it matters": text}).why == why

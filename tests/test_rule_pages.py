from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gguf_audit_rules
from gguf_audit.catalogue import Provider, family, load, page
from gguf_audit.rule import Rule

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "rules" / "gguf_audit_rules"
RULES = load([Provider("builtin", gguf_audit_rules.load)])
HEADINGS = ["What it does", "Why it matters", "Fix", "Authority"]

each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def test_every_module_is_a_rule() -> None:
    modules = {path.stem for path in PACKAGE.rglob("*.py") if not path.stem.startswith("_")}
    assert modules == {rule.name.replace("-", "_") for rule in RULES.values()}


def test_every_folder_is_a_package() -> None:
    # pkgutil passes over a folder without one, and its rules would be gone unseen.
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert all((folder / "__init__.py").is_file() for folder in folders)


@each_rule
def test_a_rule_stands_where_its_code_and_name_say(rule: Rule) -> None:
    module = rule.check.check.__module__
    name = rule.name.replace("-", "_")
    assert module == f"gguf_audit_rules.{family(rule.id).lower()}.{name}"


@each_rule
def test_a_page_is_whole(rule: Rule) -> None:
    found = page(rule)
    assert list(found.sections) == HEADINGS
    assert all(found.sections.values())
    assert found.summary.endswith(".")
    assert len(found.summary) <= 100
    assert found.why.endswith(".")
    assert rule.authority


@each_rule
def test_what_the_text_report_shows_of_a_page_is_short(rule: Rule) -> None:
    assert len(page(rule).why) <= 240


@each_rule
def test_a_rule_is_shown_to_fire_and_to_be_silent(rule: Rule) -> None:
    folder = ROOT / "tests" / "rules" / family(rule.id).lower()
    text = (folder / f"test_{rule.name.replace('-', '_')}.py").read_text("utf-8")
    tests = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    silent = [name for name in tests if name.startswith("test_silent")]
    firing = [name for name in tests if name.startswith("test_") and name not in silent]
    assert silent
    assert firing
    assert "Hit(" in text


@each_rule
def test_the_changelog_names_every_rule(rule: Rule) -> None:
    assert f"{rule.id} `{rule.name}`" in (ROOT / "CHANGELOG.md").read_text("utf-8")

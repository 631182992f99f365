from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from gguf_audit.cli.application import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
CHECK = (ROOT / "docs" / "check.md").read_text("utf-8")
RECIPES = (ROOT / "docs" / "recipes.md").read_text("utf-8")
POLICY = (ROOT / "docs" / "policy.md").read_text("utf-8")
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")})
COMMAND: Any = typer.main.get_command(app)


def options(command: str) -> set[str]:
    """Return every spelling of every option of a command."""
    found = COMMAND.commands[command].params
    return {
        spelling
        for option in found
        for spelling in option.opts
        if spelling.startswith("-") and spelling != "--help"
    }


def test_every_option_is_documented_and_no_other() -> None:
    table = CHECK.partition("| option of `check` | |")[2].partition("\n\n")[0]
    named = {word for cell in re.findall(r"`(-[^`]*)`", table) for word in cell.split(" ")[:1]}
    assert named == options("check")


def commands(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.startswith(("    gguf-audit ", "  gguf-audit ", "$ gguf-audit ")):
            yield shlex.split(line.removeprefix("$ "), comments=True)[1:]


@pytest.mark.parametrize(
    "text",
    [README, POLICY, RECIPES, *(COMMAND.commands[name].help for name in sorted(COMMAND.commands))],
)
def test_examples_use_commands_and_options_that_exist(text: str) -> None:
    found = list(commands(text))
    assert found
    for name, *arguments in found:
        if name.startswith("-"):
            assert name == "--install-completion"
            continue
        used = {word.partition("=")[0] for word in arguments if word.startswith("-")}
        assert used <= options(name)


def test_the_readme_leads_to_every_document() -> None:
    linked = {(ROOT / link).resolve() for link in re.findall(r"\]\(([^)#:]+)\)", README)}
    pages = {document for document in DOCUMENTS if document.parent != ROOT / "docs" / "rules"}
    assert pages - {ROOT / "README.md"} <= linked
    assert ROOT / "docs" / "rules" / "README.md" in linked


def test_the_readme_is_read_in_three_minutes() -> None:
    prose = re.sub(r"(?s)```.*?```", "", README)
    assert len(re.findall(r"\w+", prose)) < 1000


def test_make_targets_in_the_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    there = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    named = {
        target
        for document in DOCUMENTS
        for target in re.findall(
            r"(?:^ +|`)make ([a-z-]+)", document.read_text("utf-8"), re.MULTILINE
        )
    }
    assert {"demo", "test", "check"} <= named <= there


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", document.read_text("utf-8")):
        if not link.startswith("https://"):
            assert (document.parent / link).exists(), link


def test_what_is_generated_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

"""Writes what the documentation shows of the program: ``python docs/generate.py``.

The pages under ``docs/rules`` come from the rules' docstrings, the examples in the
README and in ``docs/show.md`` from real runs. With ``--check`` nothing is written: exit code 1 where a file
differs from what would be.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The checkout runs as it is, installed or not.
sys.path[:0] = [str(ROOT / folder) for folder in ("fixtures", "auditor", "rules")]

import gguf_audit_rules  # noqa: E402 - needs the path above
from gguf_audit import catalogue, engine  # noqa: E402
from gguf_audit.mandate import Mandate  # noqa: E402
from gguf_audit.report import pages, text  # noqa: E402
from gguf_audit.report.show import render_text  # noqa: E402
from gguf_audit.report.style import Style  # noqa: E402
from gguf_audit.rule import Rule  # noqa: E402
from gguf_audit.showing import show  # noqa: E402
from recipes import read_recipe  # noqa: E402

PAGES = ROOT / "docs" / "rules"
README = ROOT / "README.md"
SHOW = ROOT / "docs" / "show.md"
#: The case that the README shows, and what it is held against.
CASE, REFERENCE = "gemma-3-270m-window-lost", "google/gemma-3-270m"
#: Columns of the terminal that the README shows.
WIDTH = 96
NOTICE = "<!-- Written by docs/generate.py from the rule's docstring. -->\n"


def main() -> int:
    """Write the generated files, or compare them."""
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print("usage: generate.py [--check]", file=sys.stderr)
        return 2
    rules = catalogue.load([catalogue.Provider(catalogue.BUILTIN, gguf_audit_rules.load)])
    wanted = rule_pages(rules)
    wanted[README] = with_example(README, example(rules), name="example")
    wanted[SHOW] = with_example(SHOW, shown(), name="shown")
    stale = [path for path in sorted(PAGES.glob("*")) if path not in wanted]
    stale += [path for path, content in wanted.items() if not same(path, content)]
    for path in stale:
        print(f"{'differs' if check else 'written'}: {path.relative_to(ROOT)}")
        if not check and path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], "utf-8", newline="\n")
        elif not check:
            path.unlink()
    if check and stale:
        print("run: make docs", file=sys.stderr)
    return 1 if check and stale else 0


def same(path: Path, content: str) -> bool:
    """Tell whether a file has this content."""
    return path.is_file() and path.read_text("utf-8") == content


def rule_pages(rules: Mapping[str, Rule]) -> dict[Path, str]:
    """Return every page of ``docs/rules`` by its path, the index too."""
    found = {
        PAGES / f"{rule.id}-{rule.name}.md": NOTICE + pages.page(rule) for rule in rules.values()
    }
    found[PAGES / "README.md"] = index(rules)
    return found


def index(rules: Mapping[str, Rule]) -> str:
    """Return the list of all rules, a table for each family."""
    lines = [NOTICE.replace("the rule's docstring", "the rules"), "# Rules", ""]
    families: dict[str, list[Rule]] = {}
    for rule in rules.values():
        families.setdefault(catalogue.family(rule.id), []).append(rule)
    for family, members in families.items():
        package = importlib.import_module(f"gguf_audit_rules.{family.lower()}")
        lines += [f"## {family}: {(package.__doc__ or '').strip()}", ""]
        lines += ["| rule | severity | what it says |", "|---|---|---|"]
        for rule in members:
            link = f"[{rule.id} {rule.name}]({rule.id}-{rule.name}.md)"
            levels = ", ".join(rule.levels)
            lines.append(f"| {link} | {levels} | {catalogue.page(rule).summary} |")
        lines.append("")
    return "\n".join(lines)


def example(rules: Mapping[str, Rule]) -> str:
    """Return a real run on a broken file as it looks in a shell."""
    texts = {code: catalogue.page(rule) for code, rule in rules.items()}
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        name = read_recipe(CASE).write(Path()).name
        report = engine.audit_targets([name], Mandate(against=REFERENCE, rules=rules))
    shown = text.render(report, pages=texts, style=Style(width=WIDTH))
    command = f"$ gguf-audit check {name} --against {REFERENCE} --offline"
    return f"```console\n{command}\n{shown}$ echo $?\n{report.exit_code()}\n```\n"


def shown() -> str:
    """Return what is shown of the same reference as it looks in a shell."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    told = render_text(show(REFERENCE), Style(width=WIDTH))
    return f"```console\n$ gguf-audit show {REFERENCE} --offline\n{told}```\n"


def with_example(document: Path, shown: str, *, name: str) -> str:
    """Return a document with an example between its markers."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, found, rest = document.read_text("utf-8").partition(begin)
    old, closed, after = rest.partition(end)
    if not (found and closed) or begin in old:
        raise ValueError(f"{document.name} needs one pair of {name} markers")
    return before + begin + shown + end + after


if __name__ == "__main__":
    sys.exit(main())

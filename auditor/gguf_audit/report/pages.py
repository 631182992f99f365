"""The catalogue and its pages, for a terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit import catalogue
from gguf_audit.catalogue import Page
from gguf_audit.report.style import Style
from gguf_audit.rule import Rule

__all__ = ["page", "sections", "table"]


def page(rule: Rule) -> str:
    """Return a rule's page as Markdown, which reads well as it is."""
    text = catalogue.page(rule)
    needs = ", ".join(sorted(rule.needs)) or "nothing beyond the file"
    levels = ", ".join(rule.levels)
    lines = [f"# {rule.id} {rule.name}", "", text.summary, ""]
    lines += [f"Severity: {levels}. Needs: {needs}.", ""]
    return "\n".join(lines) + "\n" + sections(text)


def sections(text: Page) -> str:
    """Return the sections of a page as Markdown."""
    return "\n".join(f"## {heading}\n\n{body}\n" for heading, body in text.sections.items())


def table(rules: Mapping[str, Rule], style: Style) -> str:
    """Return one line per rule: id, name, severities, what it needs, what it says."""
    rows = [
        (
            rule.id,
            rule.name,
            "/".join(rule.levels),
            ",".join(sorted(rule.needs)) or "-",
            catalogue.page(rule).summary,
        )
        for rule in rules.values()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines: list[str] = []
    for *cells, summary in rows:
        start = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        room = None if style.width is None else style.width - len(start) - 2
        if room is not None and 20 <= room < len(summary):
            summary = summary[: room - 3] + "..."
        lines.append(f"{start}  {summary}")
    return "\n".join(lines)

"""The report for model cards, pull requests and build summaries: GitHub's Markdown.

Nothing from a file is markup: in a sentence every punctuation mark is escaped, names and
values stand in code, where nobody is mentioned and nothing is linked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gguf_audit.catalogue import Page
from gguf_audit.report.accepted import policy_name, told
from gguf_audit.report.cache import named, tables, title
from gguf_audit.report.findings import Cause, causes, facts
from gguf_audit.report.style import Detail, Style, plural
from gguf_audit.report.wording import (
    facts_of,
    gaps,
    models,
    problem,
    references,
    summary,
    targets,
    word,
)
from gguf_audit.verdict import Report

__all__ = ["render"]

#: A comment on GitHub holds 65,536 characters; what would go beyond is counted.
_CHARACTERS = 60_000
#: Rows of the table of verdicts.
_SUBJECTS = 100
#: Reasons told of one subject; mostly there is one.
_PROBLEMS = 3
_REFERENCES = 5
#: Facts that are names, values and commands; the others are sentences.
_CODE = ("expected", "found", "where", "files", "fix", "identity", "help")
#: What can be markup inside of a line, and what makes a link of an address.
_MARKUP = re.compile(r"[\\`*_\[\]<>|~&$]|:(?=//)|(?<=www)\.")
#: What can be markup at the beginning of one: lists, headings, rules.
_BEGINNING = re.compile(r"^([0-9]*)([-+=.)])")
#: Who is told of a comment, and which issue: GitHub looks for them after it has read the
#: markup, everywhere but in code.
_MENTION = re.compile(r"[@#]+")


def render(
    report: Report, *, pages: Mapping[str, Page] | None = None, style: Style | None = None
) -> str:
    """Return the report as Markdown; ``pages`` tell why a finding matters."""
    style = style or Style()
    style = Style(detail=style.detail, unicode=style.unicode)
    parts = [f"## gguf-audit\n\n**{summary(report)}**"]
    if report.policy is not None:
        parts[0] += f" by {_code(policy_name(report.policy, style))}"
    if report.subjects:
        parts.append("\n".join(_verdicts(report, style)))
    if style.detail is not Detail.VERDICT:
        if said := [f"- **{label}** {_text(text)}" for label, text in told(report, style)]:
            parts.append("\n".join(said))
        among = targets(report.subjects)
        found = causes(report.subjects)
        parts += ("\n".join(_cause(cause, among, pages or {}, style)) for cause in found)
        parts += _caches(report, style)
        if skipped := list(_skipped(report, style)):
            parts.append("\n".join(["### Rules that did not look", "", *skipped]))
    return _bounded(parts)


def _bounded(parts: list[str]) -> str:
    """Join what fits, the first parts in any case, and count the rest."""
    shown, characters = 0, 0
    for part in parts:
        characters += len(part) + 2
        if characters > _CHARACTERS:
            break
        shown += 1
    if rest := len(parts) - shown:
        parts = [*parts[:shown], f"{plural(rest, 'more section')}: `--format json` has it all."]
    return "\n\n".join(parts) + "\n"


def _verdicts(report: Report, style: Style) -> Iterator[str]:
    shown = report.subjects
    if len(shown) > _SUBJECTS:
        # What is wrong must not be cut off by what is not.
        shown = tuple(sorted(shown, key=lambda subject: word(subject)[0] == "CLEAN"))[:_SUBJECTS]
    yield from ("| verdict | file | |", "|---|---|---|")
    for subject in shown:
        says = [_text(", ".join(facts_of(subject, style)))]
        says += [_text(problem(error, subject, style)) for error in subject.errors[:_PROBLEMS]]
        said = "<br>".join(filter(None, says))
        yield f"| **{word(subject)[0]}** | {_code(style.safe(subject.target))} | {said} |"
    if rest := len(report.subjects) - len(shown):
        yield f"| | and {rest:,} more | |"
    held = references(report.subjects, style)
    for one in held[:_REFERENCES]:
        yield from ("", f"Against {_text(one)}.")
    if (rest := len(held) - _REFERENCES) > 0:
        yield from ("", f"And against {plural(rest, 'other reference')}.")


def _cause(cause: Cause, among: int, pages: Mapping[str, Page], style: Style) -> Iterator[str]:
    finding = cause.finding
    name = style.safe(f"{finding.rule} {finding.name}")
    yield f"### {finding.severity}: {_text(name)}"
    yield ""
    for label, text in facts(cause, among, pages, style):
        shown = _code(text) if label in _CODE else _text(text)
        if label == "what":
            yield from (shown, "")
        else:
            yield f"- **{label}** {shown}" if label else f"  {shown}"


def _caches(report: Report, style: Style) -> Iterator[str]:
    for table in tables(report):
        of = "" if models(report.subjects) == 1 else f" of {_code(named(table.subjects, style))}"
        lines = [f"### Cache{of}", "", f"{title(report)}.", ""]
        head, *rows = zip(*table.columns, strict=True)
        lines += [_row(head), _row(["--:"] * len(head)), *map(_row, rows)]
        yield "\n".join([*lines, "", f"**{table.remark}**"] if table.remark else lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _skipped(report: Report, style: Style) -> Iterator[str]:
    for kind, reason, rules in gaps(report.skips):
        which = ", ".join(rules) if len(rules) <= 3 else plural(len(rules), "rule")
        verb = "" if kind in ("no-evidence", "not-applicable") else f"{kind}: "
        yield f"- {_text(style.safe(which))}: {verb}{_text(style.safe(reason))}"


def _text(text: str) -> str:
    """Return a sentence that is printable already as Markdown without markup."""
    escaped = _MARKUP.sub(r"\\\g<0>", text.strip())
    return _MENTION.sub(r"`\g<0>`", _BEGINNING.sub(r"\1\\\2", escaped))


def _code(text: str) -> str:
    """Return printable text as code, in a table or out of one."""
    if "|" not in text:
        fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
        # One space at both ends is taken off; without, a backtick there would join the fence.
        room = " " if text[:1] in "` " or text[-1:] in "` " else ""
        return f"{fence}{room}{text}{room}{fence}"
    # A vertical bar ends a table's cell even between backticks. Entities are no markup, but
    # an address is linked all the same unless something stands in it.
    quoted = re.sub(r"[^A-Za-z0-9 /,=-]", _entity, text)
    return f"<code>{quoted.replace('&#64;', '&#64;<!-- -->')}</code>"


def _entity(found: re.Match[str]) -> str:
    character = found[0]
    return character if not character.isascii() else f"&#{ord(character)};"

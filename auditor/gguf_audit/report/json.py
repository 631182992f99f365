"""The report for machines: one JSON document, or one line a subject, with a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any, cast

from msgspec.structs import replace

from gguf_audit.verdict import Report, SubjectReport

__all__ = ["document", "line_schema", "render", "render_lines", "schema"]

#: Marks of a command to the machine that runs a build and shows what is printed: ``##[``,
#: ``##vso[``. In JSON they stand in strings alone.
_COMMAND = re.compile(r"##(?=\w*\[)")


def render(report: Report) -> str:
    """Return one document in ASCII, ended by a line feed."""
    return document(report.to_dict(), indent=2)


def render_lines(report: Report) -> str:
    """Return a line for each subject, each of which says its version and its tool."""
    return "".join(
        document({**_alone(report, subject).head(), **subject.to_dict()})
        for subject in report.subjects
    )


def _alone(report: Report, subject: SubjectReport) -> Report:
    """Return a report that says of its baseline only what concerns one subject."""
    if report.baseline is None:
        return report
    stale = tuple(each for each in report.baseline.stale if each[0] == subject.target)
    return replace(report, baseline=replace(report.baseline, stale=stale))


def document(value: Mapping[str, object], *, indent: int | None = None) -> str:
    """Return a value as JSON in ASCII, ended by a line feed."""
    # Nothing that JSON lacks may slip through: no NaN, no half of a surrogate pair.
    text = json.dumps(value, indent=indent, allow_nan=False)
    return _COMMAND.sub(r"#\\u0023", text) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema of the document (draft 2020-12)."""
    text = resources.files("gguf_audit.report").joinpath("schema.json").read_text("utf-8")
    return cast("dict[str, Any]", json.loads(text))


def line_schema() -> dict[str, Any]:
    """Return the JSON schema of one line of ``jsonl``: a subject that says its version."""
    whole = schema()
    subject = whole["$defs"]["subject"]
    head = [name for name in whole["required"] if name not in ("subjects", "summary")]
    return {
        **whole,
        "title": "gguf-audit report, version 1, one subject",
        "required": [*head, *subject["required"]],
        "properties": {
            **{name: whole["properties"][name] for name in head},
            **subject["properties"],
        },
    }

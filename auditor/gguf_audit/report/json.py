"""The report for machines: one JSON document with a version and a schema."""

from __future__ import annotations

import json
from importlib import resources
from typing import cast

from gguf_audit.verdict import Report

__all__ = ["render", "schema"]


def render(report: Report) -> str:
    """Return the document in ASCII, ended by a line feed."""
    # Nothing that JSON lacks may slip through: no NaN, no half of a surrogate pair.
    return json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n"


def schema() -> dict[str, object]:
    """Return the JSON schema of the document (draft 2020-12)."""
    text = resources.files("gguf_audit.report").joinpath("schema.json").read_text("utf-8")
    return cast("dict[str, object]", json.loads(text))

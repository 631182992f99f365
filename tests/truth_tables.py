"""Measured tables of what a real llama.cpp and its real converter do, where they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gguf_audit.arch import LlamaModel
from gguf_audit.errors import Refused
from gguf_audit.fields import Fields
from gguf_audit.gguf import Field, Scalar, ValueType
from gguf_audit.runtime.llama_cpp import plan

__all__ = ["SHARED", "configs", "fields_of", "measured", "outcome", "rows"]

#: Folder of the tables (``make truth`` sets it).
SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))

#: Names that llama.cpp has for the settings of ``plan``.
SETTINGS = {
    "n_ctx": "context",
    "n_parallel": "parallel",
    "n_batch": "batch",
    "n_ubatch": "ubatch",
    "type_k": "cache_type_k",
    "type_v": "cache_type_v",
    "swa_full": "swa_full",
    "kv_unified": "kv_unified",
    "flash_attn": "flash_attn",
}
#: How a run ended -> what the planner calls it.
ENDINGS = {"abort": "aborts", "context_error": "refused", "load_error": "refused"}

Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    """Return a table of ``truth``, empty where it isn't at hand."""
    table = SHARED / "truth" / f"{name}.jsonl"
    if not table.exists():
        return []
    return [json.loads(line) for line in table.read_text("utf-8").splitlines()]


def configs(name: str) -> Row:
    """Return the ``config.json`` of a checkpoint that the tables name."""
    config: Row = json.loads((SHARED / "data/configs" / name / "config.json").read_text("utf-8"))
    return config


def fields_of(metadata: Mapping[str, Row]) -> Fields:
    """Return metadata with the types that it was written with."""

    def value(item: Row) -> Scalar | tuple[Scalar, ...]:
        found: Any = item["value"]
        return tuple(found) if item["type"] == ValueType.ARRAY else found

    return Fields(
        str(metadata["general.architecture"]["value"]),
        {
            key: Field(key=key, type=ValueType(item["type"]), value=value(item))
            for key, item in metadata.items()
        },
    )


def outcome(subject: Fields | LlamaModel, settings: Mapping[str, Any]) -> int | str:
    """Return the bytes that we plan, or how llama.cpp is to end."""
    ours = {SETTINGS[name]: value for name, value in settings.items() if name in SETTINGS}
    try:
        return plan(subject, **ours).total_bytes
    except Refused as refused:
        return refused.kind


def measured(run: Row) -> int | str:
    """Return what llama.cpp did: the bytes it took or how it ended."""
    if "status" in run:
        status: str = run["status"]
        return run["bytes"] if status == "ok" else ENDINGS.get(status, status)
    if "bytes" in run:
        taken: int = run["bytes"]
        return taken
    return "refused" if "refused" in run else "aborts"


def by(rows_: Iterable[Row], *names: str) -> list[str]:
    """Return the names of rows, for the ids of tests."""
    return ["-".join(str(row[name]) for name in names if row.get(name)) for row in rows_]

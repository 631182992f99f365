"""Snapshots as huggingface_hub leaves them in its cache."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gguf_audit.checkpoint import Json

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OLDER = "1" * 40


def write_snapshot(
    cache: Path,
    files: Mapping[str, Mapping[str, Json] | str],
    *,
    repo: str = "owner/model",
    commit: str = COMMIT,
    refs: tuple[str, ...] = ("main",),
    absent: tuple[str, ...] = (),
) -> Path:
    """Write the files of a commit, the refs that mean it, and what it is known not to have."""
    storage = cache / f"models--{repo.replace('/', '--')}"
    folder = storage / "snapshots" / commit
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    for ref in refs:
        path = storage / "refs" / ref
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(commit, "ascii")
    for name in absent:
        path = storage / ".no_exist" / commit / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder

"""Leaves this folder out where the measured tables and conversions aren't at hand."""

from __future__ import annotations

import os
from pathlib import Path

collect_ignore_glob = (
    [] if Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent")).is_dir() else ["test_*.py"]
)

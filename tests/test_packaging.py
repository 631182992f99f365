from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def finished(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist and the wheel that is built out of it."""
    folder = tmp_path_factory.mktemp("dist")
    build: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder]
    finished(*build, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    [found] = built.glob("*.whl")
    return found


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources(root: str, package: str) -> set[str]:
    """Return the files of a package in the checkout as a wheel names them."""
    return {
        path.relative_to(ROOT / root).as_posix()
        for path in (ROOT / root / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_our_two_packages_whole_and_nothing_else(wheel: Path) -> None:
    ours = sources("auditor", "gguf_audit") | sources("rules", "gguf_audit_rules")
    found = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert found == ours
    assert {"gguf_audit/py.typed", "gguf_audit_rules/py.typed"} <= found
    assert "gguf_audit/report/schema.json" in found


def test_the_wheel_carries_its_licence(wheel: Path) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in contents(wheel))


def test_the_sdist_has_what_make_needs(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"Makefile", "README.md", "fixtures/build.py", "docs/generate.py", "tests/conftest.py"}
    wanted |= {"benchmarks/bench_check.py", "benchmarks/chat_template.jinja"}
    assert wanted <= names


def test_the_installed_command_has_its_rules(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    finished(*pip, "--no-deps", "--no-index", "--target", target, wheel, cwd=tmp_path)
    program = target / "bin" / "gguf-audit"
    catalogue = finished(program, "rules", cwd=tmp_path, PYTHONPATH=str(target))
    assert ["KV103", "window-lost"] in [line.split()[:2] for line in catalogue.splitlines()]
    where = "import gguf_audit, gguf_audit_rules as r; print(gguf_audit.__file__, r.__file__)"
    found = finished(sys.executable, "-c", where, cwd=tmp_path, PYTHONPATH=str(target))
    assert found.count(str(target)) == 2

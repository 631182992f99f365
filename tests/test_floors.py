from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{ROOT / 'auditor'}:{ROOT / 'rules'}"
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": path, "PATH": str(Path(sys.executable).parent)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_go_down_a_floor_never_up() -> None:
    program = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert program is not None
    done = python(program, "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_stands_on_a_floor() -> None:
    [floors] = [c for c in PROJECT["tool"]["importlinter"]["contracts"] if c["name"] == "floors"]
    listed = {
        module.strip()
        for floor in floors["layers"]
        for module in floor.replace(":", "|").split("|")
    }
    entries = (ROOT / "auditor" / "gguf_audit").iterdir()
    there = {
        f"gguf_audit.{entry.stem}"
        for entry in entries
        if (entry.suffix == ".py" or (entry / "__init__.py").is_file()) and entry.stem != "__init__"
    }
    assert there <= listed


@pytest.mark.parametrize("folder", ["auditor", "rules", "fixtures"])
def test_a_root_is_no_package(folder: str) -> None:
    # With one, ``import rules`` in the checkout would hide the distribution of that name.
    assert not (ROOT / folder / "__init__.py").exists()


def test_the_command_starts_without_heavy_imports() -> None:
    heavy = "numpy", "gguf", "transformers", "safetensors", "rich", "importlib.metadata"
    code = (
        f"import sys, gguf_audit.cli.application; print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = python("-c", code)
    assert (done.stdout, done.stderr) == ("[]\n", "")

"""The GitHub action, run as a runner would run its step."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recipes import read_recipe

yaml: Any = importlib.import_module("yaml")  # which has no types of its own
ROOT = Path(__file__).parent.parent
ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = ACTION["runs"]["steps"]
RECIPES = (ROOT / "docs" / "recipes.md").read_text("utf-8")
CHECKPOINT = ROOT / "fixtures" / "structure" / "small-llama" / "checkpoint"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def act(tmp_path: Path, shell: dict[str, str]) -> Run:
    """Return a function that runs the action's own step with these inputs, as a runner does."""

    def act(**inputs: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[-1]
        given = {**{name: each.get("default", "") for name, each in ACTION["inputs"].items()}}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        stated = {
            name: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: given[found[1]], value)
            for name, value in step["env"].items()
        }
        venv = tmp_path / "temporary" / "gguf-audit"
        venv.mkdir(parents=True, exist_ok=True)
        stated |= {"ACTION": str(ROOT), "TEMPORARY": str(tmp_path / "temporary")}
        files = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output"}
        stated |= {name: str(tmp_path / file) for name, file in files.items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=tmp_path,
            env={**shell, **stated},
            capture_output=True,
            text=True,
            check=False,
        )

    return act


def test_the_action_annotates_summarizes_and_writes_sarif(act: Run, tmp_path: Path) -> None:
    read_recipe("rope-base-wrong").write(tmp_path)
    done = act(targets="rope-base-wrong.gguf", against=str(CHECKPOINT), sarif="audit.sarif")
    assert (done.returncode, done.stderr) == (1, "")
    assert re.search(r"^::error .*title=.*CTX002", done.stdout, re.MULTILINE)
    sarif = json.loads((tmp_path / "audit.sarif").read_text("utf-8"))
    assert [result["ruleId"] for result in sarif["runs"][0]["results"]] == ["CTX002"]
    assert "CTX002" in (tmp_path / "summary.md").read_text("utf-8")
    written = f"exit-code=1\nsarif={tmp_path / 'audit.sarif'}\n"
    assert (tmp_path / "output").read_text("utf-8") == written


def test_the_action_passes_what_is_right(act: Run, tmp_path: Path) -> None:
    read_recipe("small-llama").write(tmp_path)
    done = act(targets="\n  small-llama.gguf  \n\n", against=str(CHECKPOINT))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "output").read_text("utf-8") == "exit-code=0\nsarif=\n"


def test_the_action_audits_once_and_adds_to_the_summary(act: Run, tmp_path: Path) -> None:
    read_recipe("small-llama").write(tmp_path)
    program = tmp_path / "bin" / "gguf-audit"
    program.rename(tmp_path / "bin" / "real")
    program.write_text('#!/usr/bin/env bash\necho run >> runs\nexec real "$@"\n', "utf-8")
    program.chmod(0o755)
    (tmp_path / "summary.md").write_text("# Before\n", "utf-8")
    assert act(targets="small-llama.gguf", sarif=str(tmp_path / "a.sarif")).returncode == 0
    assert (tmp_path / "runs").read_text("utf-8") == "run\n"
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("# Before\n## gguf-audit\n")
    assert f"sarif={tmp_path}/a.sarif\n" in (tmp_path / "output").read_text("utf-8")


def test_the_action_says_where_it_cannot_write(act: Run, tmp_path: Path) -> None:
    read_recipe("small-llama").write(tmp_path)
    done = act(targets="small-llama.gguf", sarif="no/audit.sarif")
    assert (done.returncode, done.stdout) == (2, "")
    assert "can't write 'no/audit.sarif': its folder is not there" in done.stderr


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"fail_on": "never"}, 0),
        ({"fail_on": "error"}, 1),
        ({"require": "reference"}, 1),
        ({"targets": "missing.gguf"}, 3),
        ({"targets": "unknown-architecture.gguf"}, 3),
        ({"targets": "unknown-architecture.gguf", "allow_unknown": "true"}, 0),
        ({"targets": "small-llama.gguf", "max_cache": "1KiB"}, 1),
        ({"targets": "small-llama.gguf", "profile": "deploy"}, 3),
        ({"targets": "small-llama.gguf", "policy": "missing.toml"}, 2),
        ({"targets": ""}, 2),
        ({"offline": "yes"}, 2),
        ({"against": "a\nb"}, 2),
    ],
)
def test_the_action_passes_its_inputs_on(
    act: Run, tmp_path: Path, inputs: dict[str, str], code: int
) -> None:
    for case in ("eos-wrong", "small-llama", "unknown-architecture"):
        read_recipe(case).write(tmp_path)
    alone = {"targets": "tokens-short.gguf"}
    read_recipe("tokens-short").write(tmp_path)
    assert act(**{**alone, **inputs}).returncode == code


HOSTILE = (
    "$(touch owned)",
    "`touch owned`",
    "; touch owned",
    "x' ; touch owned; '",
    "-o=owned",
    "*",
)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", ["targets", "against", "policy", "sarif", "fail_on", "require"])
def test_no_input_is_read_as_shell_or_as_another_option(
    act: Run, tmp_path: Path, hostile: str, name: str
) -> None:
    program = tmp_path / "bin" / "gguf-audit"
    program.write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$@" >> words\n', "utf-8")
    assert act(**{"targets": "model.gguf", name: hostile}).returncode == 0
    assert not (tmp_path / "owned").exists()
    words = (tmp_path / "words").read_text("utf-8").splitlines()
    option = f"--{name.replace('_', '-')}={hostile}"
    as_target = "./-o=owned" if hostile.startswith("-") else hostile
    expected = {"targets": as_target, "sarif": f"--report=sarif={hostile}"}.get(name, option)
    assert expected in words
    assert hostile not in {*words} - {expected}


def test_every_input_reaches_the_script_by_its_environment_alone() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", ""), "an expression in a script is an injection"
    used = re.findall(r"inputs\.([a-z-]+)", json.dumps(STEPS))
    assert sorted(used) == sorted(ACTION["inputs"])
    script = (ROOT / "gates" / "action.sh").read_text("utf-8")
    stated = {name for name in STEPS[-1]["env"] if name.startswith("AUDIT_")}
    assert set(re.findall(r"\$\{(AUDIT_[A-Z_]+)-\}", script)) == stated


def test_other_actions_are_pinned_to_a_commit() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each) for each in used)


def test_the_recipe_of_the_action_uses_inputs_that_exist() -> None:
    [block] = re.findall(r"```yaml\n( +- uses: OWNER.*?)```", RECIPES, re.DOTALL)
    [step] = yaml.safe_load(block)
    assert set(step["with"]) <= set(ACTION["inputs"])

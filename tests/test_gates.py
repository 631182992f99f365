"""The pre-commit hook, the container and completion."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recipes import read_recipe

yaml: Any = importlib.import_module("yaml")  # which has no types of its own
ROOT = Path(__file__).parent.parent
RECIPES = (ROOT / "docs" / "recipes.md").read_text("utf-8")


# pre-commit


def test_the_hook_audits_the_files_that_it_is_given(tmp_path: Path, shell: dict[str, str]) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    [block] = re.findall(r"```yaml\n(repos:.*?)```", RECIPES, re.DOTALL)
    [used] = yaml.safe_load(block)["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    names = [read_recipe(name).write(tmp_path).name for name in ("small-llama", "tokens-short")]
    assert all(re.search(hook["files"], name) for name in names)
    assert not re.search(hook["files"], "model.gguf.json")

    def commit(*files: str) -> int:
        command = [*hook["entry"].split(), *files]
        return subprocess.run(
            command, cwd=tmp_path, env=shell, capture_output=True, check=False
        ).returncode

    assert [commit(names[0]), commit(*names)] == [0, 1]


# The container


def test_the_container_runs_as_nobody_and_copies_what_is_there() -> None:
    lines = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text("utf-8")).splitlines()
    said = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    users = [argument for word, argument in said if word == "USER"]
    assert users == ["65532:65532"]
    last = [word for word, _ in said]
    assert last.index("USER") < last.index("ENTRYPOINT")
    [*_, folder] = [argument for word, argument in said if word == "WORKDIR"]
    assert folder == "/", "elsewhere a policy among the models would count"
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    for word, argument in said:
        if word == "COPY" and not argument.startswith("--from"):
            *sources, _ = argument.split()
            assert all((ROOT / source).exists() for source in sources)
            assert {f"!{source}" for source in sources} <= set(ignored)
    # What the build needs is what is copied.
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'readme = "README.md"' in project
    assert 'license-files = ["LICENSE"]' in project


def test_nothing_is_written_where_nothing_can_be(tmp_path: Path, shell: dict[str, str]) -> None:
    model = read_recipe("gemma-3-270m").write(tmp_path)
    # /proc takes no file, whoever asks.
    closed = {"HOME": "/proc", "HF_HOME": "/proc/huggingface", "TMPDIR": "/proc"}
    done = subprocess.run(
        ["gguf-audit", "check", model, "--against", "google/gemma-3-270m"],
        cwd="/proc",
        env={**shell, **closed, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# Completion


def completed(shell: dict[str, str], setup: str, words: str) -> subprocess.CompletedProcess[str]:
    """Return what bash offers at the end of these words after this setup."""
    script = f"""\
{setup}
complete -p gguf-audit > /dev/null
read -ra COMP_WORDS <<< "{words}"
case "{words}" in *" ") COMP_WORDS+=("") ;; esac
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_gguf_audit_completion gguf-audit
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script],
        env=shell,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("gguf-audit ch", ["check"]),
        ("gguf-audit check --fail-on w", ["warning"]),
        ("gguf-audit check --profile ", ["publish", "deploy"]),
        ("gguf-audit check --max-c", ["--max-cache"]),
        # Nothing, and bash goes on to files.
        ("gguf-audit check mod", []),
        ("gguf-audit check --against che", []),
        ("gguf-audit check --report sarif=au", []),
    ],
)
def test_bash_completes_commands_options_and_values(
    shell: dict[str, str], words: str, expected: list[str]
) -> None:
    done = completed(shell, 'eval "$(gguf-audit --show-completion)"', words)
    assert (done.stdout.split(), done.stderr) == (expected, "")


def test_completion_is_there_after_the_command_of_the_page(shell: dict[str, str]) -> None:
    [command] = re.findall(r"^    (gguf-audit --install-completion.*)$", RECIPES, re.MULTILINE)
    assert command.endswith("-completion"), "it takes no shell's name"
    done = completed(shell, f"{command} > /dev/null\n. ~/.bashrc", "gguf-audit ch")
    assert (done.stdout, done.stderr) == ("check\n", "")

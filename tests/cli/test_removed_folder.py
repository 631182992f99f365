"""The command in a working directory that somebody has removed: what is named whole is audited."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

REMOVED = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def nowhere(spawn: Callable[..., Done]) -> Callable[..., Done]:
    """Return a function that runs the command in a folder that is not there any more."""
    return functools.partial(spawn, before=("sh", "-c", REMOVED, "sh"))


@pytest.mark.parametrize(
    "wanted", ["text", "json", "jsonl", "sarif", "junit", "github", "markdown", "html"]
)
def test_every_format_is_that_of_another_folder(
    nowhere: Callable[..., Done], spawn: Callable[..., Done], models: Path, wanted: str
) -> None:
    file, report = models / "wrong.gguf", models / "report"
    done = nowhere("check", file, "--format", wanted, f"--report={wanted}={report}")
    here = spawn("check", str(file), "--format", wanted, GITHUB_WORKSPACE="/nowhere")
    assert (done.returncode, done.stderr) == (1, "")
    assert report.read_text("utf-8") == done.stdout
    # Findings are shown by whole paths then, since no folder is known that they are in.
    shown = done.stdout.replace(str(models)[1:] + "/", "")
    assert shown == here.stdout.replace(str(models)[1:] + "/", "")


def test_a_checkout_that_is_named_is_the_one(nowhere: Callable[..., Done], models: Path) -> None:
    file = models / "wrong.gguf"
    done = nowhere("check", file, "--format", "github", GITHUB_WORKSPACE=str(models))
    assert done.stdout.startswith("::error file=wrong.gguf,"), done.stdout


def test_what_would_be_there_is_not_there(nowhere: Callable[..., Done], models: Path) -> None:
    for target, why in {
        "sound.gguf": "can't read sound.gguf: No such file or directory",
        ".": ". has no .gguf file in it",
        "a/b": "no such file or folder here; --offline or HF_HUB_OFFLINE is set, and the local"
        " Hub cache has no .gguf file of a/b",
    }.items():
        done = nowhere("check", models / "sound.gguf", target, "--offline", "--format", "json")
        assert (done.returncode, done.stderr) == (3, ""), target
        files = json.loads(done.stdout)["subjects"]
        assert [each["target"] for each in files] == [str(models / "sound.gguf"), target]
        said = [[error["message"] for error in each["errors"]] for each in files]
        assert said == [[], [why]], target


@pytest.mark.parametrize("option", ["-o", "--sums", "--baseline", "--policy", "--report"])
def test_a_file_that_would_be_there_is_wrong_usage(
    nowhere: Callable[..., Done], models: Path, option: str
) -> None:
    value = "sarif=file" if option == "--report" else "file"
    done = nowhere("check", models / "sound.gguf", option, value)
    assert (done.returncode, done.stdout) == (2, "")
    *_, said = done.stderr.splitlines()
    assert said.startswith(f"Error: Invalid value for {option}: can't "), said
    assert said.endswith(": No such file or directory"), said


def test_files_that_are_named_whole_are_read_and_written(
    nowhere: Callable[..., Done], models: Path
) -> None:
    # The policy of a folder that one isn't in any more is nobody's.
    (models / ".gguf-audit.toml").write_text('fail-on = "never"\n', "utf-8")
    file = models / "wrong.gguf"
    first = nowhere("check", file, "-o", models / "base", "--format", "json")
    assert (first.returncode, first.stdout) == (1, "")
    assert first.stderr == (
        f"gguf-audit: 1 model: 1 error, 0 warnings, 0 infos (the report is in {models / 'base'})\n"
    )
    assert json.loads((models / "base").read_text("utf-8"))["policy"] is None
    done = nowhere("check", file, "--baseline", models / "base", "-q", "--sums", models / "sums")
    assert (done.returncode, done.stderr) == (0, "")
    assert (models / "sums").is_file()
    done = nowhere("check", file, "--policy", models / ".gguf-audit.toml", "-q")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_other_commands(nowhere: Callable[..., Done], models: Path) -> None:
    for arguments in (["show", models / "sound.gguf"], ["rules", "KV101"], ["--help"]):
        done = nowhere(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments
    done = nowhere("show", "sound.gguf")
    assert (done.returncode, done.stderr) == (3, "")


def test_a_llama_cpp_that_would_be_there(nowhere: Callable[..., Done], models: Path) -> None:
    done = nowhere("check", models / "sound.gguf", "--probe", GGUF_AUDIT_LIBLLAMA="libllama.so")
    assert (done.returncode, done.stderr) == (3, "")
    assert "GGUF_AUDIT_LIBLLAMA names no file: libllama.so" in done.stdout

"""A sound file, one with an error, and the command to run on them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gguf_audit.cli import main
from gguf_audit.testing import write_gguf
from llama_tensors import llama_tensors

ROOT = Path(__file__).parent.parent.parent
PROGRAM = "import sys; sys.argv[0] = 'gguf-audit'; from gguf_audit.cli import main; main()"
FIELDS: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.context_length": 128,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 1,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": ["<unk>", "a"],
    "tokenizer.ggml.scores": [0.0, 1.0],
    "tokenizer.ggml.token_type": [2, 1],
}
TENSORS = llama_tensors(
    blocks=1, embedding=64, queries=64, keys=32, feed_forward=128, vocabulary=2, type_="F16"
)

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a folder with ``sound.gguf`` and ``wrong.gguf``, whose eos id is no token."""
    folder = tmp_path / "models"
    folder.mkdir()
    write_gguf(folder / "sound.gguf", FIELDS, TENSORS)
    write_gguf(folder / "wrong.gguf", {**FIELDS, "tokenizer.ggml.eos_token_id": 7}, TENSORS)
    return folder


@pytest.fixture
def write(models: Path) -> Callable[..., None]:
    """Return a function that writes the sound file with other keys, under another name."""

    def write(name: str, fields: dict[str, Any]) -> None:
        write_gguf(models / name, {**FIELDS, **fields}, TENSORS)

    return write


@pytest.fixture
def environment(metadata: Path) -> dict[str, str]:
    """Return the environment in which the checkout is an installed program."""
    roots = [str(metadata), str(ROOT / "auditor"), str(ROOT / "rules")]
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "HF_ENDPOINT", "HF_HOME")
        if name in os.environ
    }
    return {**kept, "PYTHONPATH": os.pathsep.join(roots), "PYTHONUTF8": "1"}


@pytest.fixture
def command() -> list[str]:
    """Return what starts the program."""
    # As the script that is installed: the working directory is no place to import from.
    return [sys.executable, "-P", "-c", PROGRAM]


@pytest.fixture
def run(
    models: Path,
    installed: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Done]:
    """Return a function that runs the command among the models, in this process."""
    del installed
    monkeypatch.chdir(models)
    for name in ("FORCE_COLOR", "NO_COLOR", "HF_HUB_OFFLINE", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.setenv(name, "")

    def run(*arguments: str, **environment: str) -> Done:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["gguf-audit", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        code = ended.value.code
        return Done(arguments, code if isinstance(code, int) else 0, said.out, said.err)

    return run


@pytest.fixture
def spawn(models: Path, environment: dict[str, str], command: list[str]) -> Callable[..., Done]:
    """Return a function that runs the command among the models, as a process.

    ``before`` are the words of what starts it.
    """

    def spawn(*arguments: object, before: Sequence[str] = (), **more: str) -> Done:
        return subprocess.run(
            [*before, *command, *map(str, arguments)],
            cwd=models,
            env={**environment, **more},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return spawn


@pytest.fixture
def full() -> str:
    """Return a device that is always full."""
    if not Path("/dev/full").exists():
        pytest.xfail("this system has none")
    return "/dev/full"

"""What becomes of a command whose words can't be written: a device is full, a reader has left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

#: Arguments, the variables they need, and the exit code where everything can be written.
SAID: dict[str, tuple[dict[str, str], int]] = {
    "--help": ({}, 0),
    "--version": ({}, 0),
    "check --help": ({}, 0),
    "rules --help": ({}, 0),
    "show --help": ({}, 0),
    "check wrong.gguf -q": ({}, 1),
    "rules KV": ({}, 0),
    "rules KV101": ({}, 0),
    "show sound.gguf": ({}, 0),
    "--show-completion bash": ({"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}, 0),
    "": ({"_GGUF_AUDIT_COMPLETE": "source_bash"}, 0),
    # A space more, and the same words.
    " ": (
        {
            "_GGUF_AUDIT_COMPLETE": "complete_bash",
            "COMP_WORDS": "gguf-audit ch",
            "COMP_CWORD": "1",
        },
        0,
    ),
}
#: What only stderr gets to see, and the exit code where it does.
COMPLAINED = {
    "": 2,
    "check": 2,
    "--nonsense": 2,
    "nonsense": 2,
    "check sound.gguf --ctx x": 2,
    "rules XXX": 2,
    "check sound.gguf -o {full}": 3,
}

Start = Callable[..., "tuple[int, bytes]"]


@pytest.fixture
def start(models: Path, environment: dict[str, str], command: list[str]) -> Start:
    """Return a function that runs the command with its stdout and stderr somewhere.

    It gives the exit code and what came to the stream that was left for a pipe.
    """

    def start(
        arguments: str,
        more: dict[str, str],
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> tuple[int, bytes]:
        done = subprocess.run(
            [*command, *arguments.split()],
            cwd=models,
            env={**environment, **more},
            stdout=stdout,
            stderr=stderr,
            check=False,
        )
        return done.returncode, (done.stdout or b"") + (done.stderr or b"")

    return start


@pytest.fixture
def device(full: str) -> Iterator[int]:
    """Give a descriptor of a device that is always full."""
    descriptor = os.open(full, os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def left() -> Iterator[int]:
    """Give a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("arguments", SAID)
def test_what_a_full_device_does_not_take_is_no_success(
    start: Start, device: int, arguments: str
) -> None:
    more, _ = SAID[arguments]
    expected = (3, b"gguf-audit: No space left on device\n")
    assert start(arguments, more, stdout=device) == expected


@pytest.mark.parametrize("arguments", SAID)
def test_a_reader_that_left_is_no_failure(start: Start, left: int, arguments: str) -> None:
    more, code = SAID[arguments]
    assert start(arguments, more, stdout=left) == (code, b"")


@pytest.mark.parametrize("arguments", COMPLAINED)
def test_a_complaint_that_a_full_device_does_not_take(
    start: Start, full: str, device: int, arguments: str
) -> None:
    assert start(arguments.format(full=full), {}, stderr=device) == (3, b"")


@pytest.mark.parametrize("arguments", COMPLAINED)
def test_a_complaint_that_nobody_reads(start: Start, full: str, left: int, arguments: str) -> None:
    assert start(arguments.format(full=full), {}, stderr=left) == (COMPLAINED[arguments], b"")


@pytest.mark.parametrize("arguments", ["check sound.gguf", "rules KV", "show sound.gguf"])
def test_a_closed_stdout_is_no_success(
    models: Path, environment: dict[str, str], command: list[str], arguments: str
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command, *arguments.split()],
        cwd=models,
        env=environment,
        capture_output=True,
        check=False,
    )
    said = b"gguf-audit: can't write to stdout: it is closed\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", said)


def test_neither_stream_takes_anything(start: Start, device: int) -> None:
    for arguments in ("--version", "rules KV101", "nonsense"):
        assert start(arguments, {}, stdout=device, stderr=device) == (3, b"")


def test_an_error_is_told_even_where_its_traceback_cannot_be(
    start: Start, full: str, left: int
) -> None:
    arguments = f"check sound.gguf -o {full} --debug"
    assert start(arguments, {}, stderr=left) == (3, b"")


def test_a_completion_that_cannot_be_installed(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").mkdir()
    more = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    says = f"gguf-audit: Is a directory: '{tmp_path}/.bashrc'\n"
    assert start("--install-completion bash", more) == (3, says.encode())


def test_the_package_ends_as_the_command_does(environment: dict[str, str], device: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gguf_audit", "--help"],
        env=environment,
        stdout=device,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        3,
        b"gguf-audit: No space left on device\n",
    )

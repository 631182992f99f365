"""The command on many targets: processes, parts, a bar, an interrupt."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gguf_audit.cli.progress import progress_bar
from gguf_audit.parallel import can_fork

Done = subprocess.CompletedProcess[str]


def test_several_processes_print_the_same(run: Callable[..., Done]) -> None:
    one = run("check", ".", "--format", "json", "--jobs", "1")
    two = run("check", ".", "--format", "json", "--jobs", "2")
    assert (two.returncode, two.stdout, two.stderr) == (one.returncode, one.stdout, "")


def test_a_part_of_the_models(run: Callable[..., Done]) -> None:
    done = run("check", ".", "--shard", "1/2", "--format", "json")
    assert [each["target"] for each in json.loads(done.stdout)["subjects"]] == ["sound.gguf"]
    assert done.returncode == 0
    assert run("check", ".", "--shard", "2/2").returncode == 1
    none = run("check", ".", "--shard", "3/3")
    assert (none.returncode, none.stdout) == (0, "0 models: the 2 files found are of other parts\n")


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2"])
def test_what_is_no_part(run: Callable[..., Done], shard: str) -> None:
    done = run("check", ".", "--shard", shard)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.skipif(not can_fork(), reason="processes are forked on Linux alone")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_stops_all_of_it(
    command: list[str], environment: dict[str, str], models: Path, jobs: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [*command, "check", f"{url}/a.gguf", f"{url}/b.gguf", f"{url}/c.gguf", "--jobs", jobs],
            cwd=models,
            env={**environment, "NO_PROXY": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        waiting, _ = silent.accept()
        with waiting:  # It has begun, and waits for an answer.
            os.killpg(process.pid, signal.SIGINT)
            start = time.monotonic()
            stdout, stderr = process.communicate(timeout=20)
        assert time.monotonic() - start < 8
    assert (process.returncode, stdout, stderr) == (130, "", "")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # Nobody of them is left.


# The bar


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_and_is_gone_at_the_end() -> None:
    stream = Terminal()
    with progress_bar(stream, wanted=True) as told:
        assert told is not None
        told(1, 2, "a\x1b[31m.gguf")
        assert "1/2" in stream.getvalue()
        assert "\x1b[31m.gguf" not in stream.getvalue()
        told(2, 2, "b.gguf")
    assert stream.getvalue().endswith("\x1b[2K")


def test_one_file_has_no_bar() -> None:
    stream = Terminal()
    with progress_bar(stream, wanted=True) as told:
        assert told is not None
        told(1, 1, "a.gguf")
    assert "a.gguf" not in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "wanted"), [(io.StringIO(), True), (Terminal(), False), (None, True)]
)
def test_nobody_who_looks_no_bar(stream: io.StringIO | None, wanted: bool) -> None:
    with progress_bar(stream, wanted=wanted) as told:
        assert told is None

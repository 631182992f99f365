from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer

import gguf_audit
from gguf_audit.cli.outcome import complain, end, write_out
from gguf_audit.errors import MalformedError

#: Starts with a finder that interrupts the process when typer is looked for.
INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"gguf-audit {gguf_audit.__version__}\n"


def test_help_teaches(run: Run) -> None:
    assert re.search(r"^  check  .*\n  rules  ", run("--help").stdout, re.MULTILINE)
    text = run("check", "--help").stdout
    assert "  gguf-audit check model.gguf --against google/gemma-3-270m\n" in text
    assert "  3  something that was asked for could not be audited\n" in text


def test_the_process_ends_with_the_code(spawn: Run) -> None:
    done = spawn("check", "wrong.gguf", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "ERROR  wrong.gguf: 1 error, llama\n",
        "",
    )


def test_the_list_of_commands_is_cut_nowhere(run: Run) -> None:
    _, _, commands = run("--help").stdout.partition("Commands:")
    assert commands.count("\n  ") >= 3
    assert "..." not in commands


def test_the_package_is_the_command(environment: dict[str, str]) -> None:
    line = [sys.executable, "-m", "gguf_audit", "--version"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"gguf-audit {gguf_audit.__version__}\n"


def test_without_a_command_there_is_help(run: Run) -> None:
    done = run()
    assert "Usage: gguf-audit" in done.stdout + done.stderr


def test_the_entry_point_is_there() -> None:
    point = EntryPoint("gguf-audit", "gguf_audit.cli:main", "console_scripts")
    assert callable(point.load())


def test_an_interrupt_while_starting_is_no_traceback(
    command: list[str], environment: dict[str, str]
) -> None:
    # SIGINT arrives while the command's own modules are imported.
    code = command[-1].replace("import sys; ", INTERRUPTED)
    done = subprocess.run(
        [*command[:-1], code, "--help"], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_little_is_imported_before_an_interrupt_is_caught(environment: dict[str, str]) -> None:
    code = (
        "import sys; known = {*sys.modules}; import gguf_audit.cli; print({*sys.modules} - known)"
    )
    line = [sys.executable, "-S", "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=True)
    # The first is a flag of the compiler's, the second is built in.
    found = set(re.findall(r"'([^']*)'", done.stdout)) - {"__future__", "gc"}
    assert found == {"gguf_audit", "gguf_audit.cli"}


def code_of(work: Callable[[], int], *, debug: bool = False) -> int:
    with pytest.raises(typer.Exit) as caught:
        end(work, debug=debug)
    return caught.value.exit_code


def failing(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


def test_the_code_of_finished_work() -> None:
    assert [code_of(code.__int__) for code in (0, 1, 3)] == [0, 1, 3]


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MalformedError("cut\x1b"), 3, "gguf-audit: cut\\x1b\n"),
        (OSError(28, "No space left"), 3, "gguf-audit: No space left\n"),
        (
            ValueError("oops\n"),
            3,
            "gguf-audit: internal error: ValueError: oops\\n (--debug tells where)\n",
        ),
        (
            RecursionError("deep"),
            3,
            "gguf-audit: internal error: RecursionError: deep (--debug tells where)\n",
        ),
    ],
)
def test_whatever_happens_ends_in_one_line(
    error: BaseException, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(failing(error)) == code
    assert capsys.readouterr() == ("", says)


def test_an_error_that_cannot_be_told_is_still_none_of_the_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Mute(Exception):  # noqa: N818 - it only has to fail
        def __str__(self) -> str:
            raise EOFError

    assert code_of(failing(Mute())) == 3
    assert capsys.readouterr() == ("", "")


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(failing(ValueError("oops")), debug=True) == 3
    assert "Traceback" in capsys.readouterr().err


def test_wrong_usage_passes_through() -> None:
    with pytest.raises(typer.BadParameter):
        end(failing(typer.BadParameter("x")), debug=False)


def test_a_complaint_is_one_safe_line(capsys: pytest.CaptureFixture[str]) -> None:
    complain("two\nlines \x1b[2J")
    assert capsys.readouterr().err == "gguf-audit: two\\nlines \\x1b[2J\n"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("old", "utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_out(path, "new \ud800")
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]

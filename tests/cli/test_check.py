from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gguf_audit.testing import write_gguf

TENSORS = [("token_embd.weight", (64, 2), "F16")]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["sound.gguf"], 0),
        (["wrong.gguf"], 1),
        (["sound.gguf", "wrong.gguf"], 1),
        (["wrong.gguf", "sound.gguf"], 1),
        (["."], 1),
        (["wrong.gguf", "--fail-on", "never"], 0),
        (["wrong.gguf", "--severity", "TOK003=warning"], 0),
        (["wrong.gguf", "--severity", "TOK=warning", "--fail-on", "warning"], 1),
        (["wrong.gguf", "--ignore", "special-id-out-of-range"], 0),
        (["wrong.gguf", "--select", "GGUF,KV"], 0),
        (["wrong.gguf", "--select", "gguf", "--select", "tok003"], 1),
        (["missing.gguf"], 3),
        (["sound.gguf", "missing.gguf"], 3),
        (["missing.gguf", "wrong.gguf"], 1),
        (["sound.gguf", "--against", "nowhere/to-be-found", "--offline"], 3),
        (["sound.gguf", "--require", "reference"], 3),
    ],
)
def test_exit_codes(run: Run, arguments: list[str], code: int) -> None:
    done = run("check", *arguments)
    assert (done.returncode, done.stderr) == (code, "")


def test_an_unknown_architecture_needs_the_users_word(run: Run, models: Path) -> None:
    write_gguf(models / "unknown.gguf", {"general.architecture": "nonesuch"}, TENSORS)
    unknown = "check", "unknown.gguf", "sound.gguf"
    assert run(*unknown).returncode == 3
    assert run(*unknown, "--allow-unknown").returncode == 0
    assert run(*unknown, "missing.gguf", "--allow-unknown").returncode == 3


def test_offline_holds_for_every_library(run: Run) -> None:
    run("check", "sound.gguf")
    assert os.environ["HF_HUB_OFFLINE"] == ""
    run("check", "sound.gguf", "--offline")
    assert os.environ["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "TARGET"),
        (["sound.gguf", "--select", "KV999"], "--select / --ignore: no rule is called 'KV999'"),
        (["sound.gguf", "--ignore", "nonsense"], "no rule is called 'nonsense'"),
        (["sound.gguf", "--severity", "TOK003"], "--severity: 'TOK003' is not CODE=LEVEL"),
        (["sound.gguf", "--severity", "TOK003=fatal"], "is not CODE=LEVEL"),
        (["sound.gguf", "--select", "KV", "--ignore", "KV"], "no rule is left"),
        (["sound.gguf", "--ctx", "many"], "--ctx: 'many' is no number of tokens from 1 to"),
        (["sound.gguf", "--ctx", "0"], "'0' is no number of tokens from 1 to 4294967295"),
        (["sound.gguf", "--ctx", "9" * 5000], "is no number of tokens"),
        (["sound.gguf", "--require", "magic"], "'magic' is none of"),
        (["sound.gguf", "--fail-on", "fatal"], "fatal"),
        (["sound.gguf", "--format", "yaml"], "yaml"),
        (["sound.gguf", "-o", "no/such/folder/report"], "its folder is not there"),
        (["sound.gguf", "-o", "."], "can't write '.': neither a file nor a device"),
        (["sound.gguf", "-o", "sound.gguf"], "it is no report, and writing one would destroy it"),
        (["sound.gguf", "--report", "report.json"], "expected FORMAT=FILE"),
        (["sound.gguf", "--report", "yaml=report"], "a FORMAT of text, json,"),
        (["sound.gguf", "--report", "json="], "got 'json='"),
        (["sound.gguf", "--report", "json=-"], "got 'json=-'"),
        (["sound.gguf", "--report", "json=no/report"], "can't write 'no/report'"),
        (["sound.gguf", "--report", "json=sound.gguf"], "it is no report"),
        (
            ["sound.gguf", "--report", "json=a", "--report", "html=./a"],
            "'a' can't hold two reports",
        ),
        (["sound.gguf", "-o", "a", "--report", "html=a"], "'a' can't hold two reports"),
        (["sound.gguf", "-o", "a", "--sums", "a"], "'a' can't hold two reports"),
        (["sound.gguf", "-q", "-v"], "choose one"),
        (["sound.gguf", "--no-such-option"], "--no-such-option"),
    ],
)
def test_wrong_usage(run: Run, arguments: list[str], says: str) -> None:
    done = run("check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_text(run: Run) -> None:
    text = run("check", "wrong.gguf", "--select", "TOK003", "--ctx", "65536").stdout
    assert (
        text
        == """\
ERROR  wrong.gguf: 1 error, llama

  error TOK003 special-id-out-of-range
    what      needs an id below 2, tokenizer.ggml.eos_token_id is 7
    expected  0 to 1
    found     7
    where     tokenizer.ggml.eos_token_id, offset 580
    why       llama.cpp warns and uses its own default instead, which is another token; \
other engines read past the end of the list.
    fix       reconvert (or gguf-new-metadata --special-token-by-id, with the right id)
    help      gguf-audit rules TOK003

  KV cache in MiB: llama.cpp b11434, one sequence, f16
    tokens   this file   full attention
    65,536           8                8

1 model: 1 error, 0 warnings, 0 infos
"""
    )


def test_nothing_to_audit_says_so_in_one_line(run: Run, models: Path) -> None:
    (models / "empty").mkdir()
    assert run("check", "empty", "missing.gguf").stdout == (
        "NOT AUDITED  empty\n"
        "    because   empty has no .gguf file in it\n"
        "NOT AUDITED  missing.gguf\n"
        "    because   can't read missing.gguf: No such file or directory\n"
        "\n"
        "2 models: 0 errors, 0 warnings, 0 infos, 2 not fully audited\n"
    )


def test_json_holds_every_subject(run: Run) -> None:
    document = json.loads(run("check", ".", "--format", "json", "--ctx", "64,4096").stdout)
    assert [subject["status"] for subject in document["subjects"]] == ["clean", "findings"]
    tokens = [row["tokens"] for row in document["subjects"][0]["cache"]["bytes"]]
    assert tokens == [64, 4096]


def test_rules_that_need_a_reference_are_counted(run: Run) -> None:
    assert "rules: a reference is needed: give --against\n" in run("check", "sound.gguf").stdout


def test_quiet_and_verbose(run: Run) -> None:
    assert run("check", "wrong.gguf", "-q").stdout == "ERROR  wrong.gguf: 1 error, llama\n"
    assert "    authority " in run("check", "wrong.gguf", "-v").stdout


def test_output_goes_to_the_file_whole(run: Run, models: Path) -> None:
    report = models / "report.txt"
    report.write_text("CLEAN  old\n" * 1000, "utf-8")
    done = run("check", "wrong.gguf", "-q", "-o", "report.txt", FORCE_COLOR="1")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert report.read_text("utf-8") == "ERROR  wrong.gguf: 1 error, llama\n"
    assert sorted(path.name for path in models.iterdir()) == [
        "report.txt",
        "sound.gguf",
        "wrong.gguf",
    ]


def test_output_to_a_device_is_no_rename(run: Run) -> None:
    assert run("check", "sound.gguf", "-o", os.devnull).returncode == 0
    assert not Path(os.devnull).is_file()


def test_output_through_a_link_keeps_the_link(run: Run, models: Path) -> None:
    (models / "link").symlink_to("real")
    (models / "real").touch()
    assert run("check", "sound.gguf", "-q", "-o", "link").returncode == 0
    assert (models / "link").is_symlink()
    assert (models / "real").read_text("utf-8").startswith("CLEAN")


def test_a_link_to_the_subject_is_seen_through(run: Run, models: Path) -> None:
    (models / "link").symlink_to("sound.gguf")
    before = (models / "sound.gguf").read_bytes()
    assert run("check", "sound.gguf", "-o", "link").returncode == 2
    assert run("check", "sound.gguf", "--against", "link", "-o", "link").returncode == 2
    assert (models / "sound.gguf").read_bytes() == before


def test_a_full_disk_is_no_success(spawn: Run, full: str) -> None:
    done = spawn("check", "sound.gguf", "-o", full)
    assert done.returncode == 3
    assert done.stderr == "gguf-audit: can't write '/dev/full': No space left on device\n"


def test_a_reader_that_left_changes_nothing(
    command: list[str], models: Path, environment: dict[str, str]
) -> None:
    with subprocess.Popen(
        [*command, "check", "wrong.gguf"],
        cwd=models,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_colour_only_where_it_is_wanted(run: Run) -> None:
    assert "\x1b" not in run("check", "wrong.gguf").stdout
    assert "\x1b[1;31mERROR" in run("check", "wrong.gguf", FORCE_COLOR="1").stdout
    assert "\x1b" not in run("check", "wrong.gguf", FORCE_COLOR="1", NO_COLOR="1").stdout


def test_an_encoding_that_lacks_letters_gets_ascii(spawn: Run, models: Path) -> None:
    (models / "wrong.gguf").rename(models / "é日.gguf")
    done = spawn("check", "é日.gguf", "-q", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert done.stdout == "ERROR  \\xe9\\u65e5.gguf: 1 error, llama\n"


def test_names_that_are_no_utf8_are_spelled_out(
    command: list[str], models: Path, environment: dict[str, str]
) -> None:
    odd = os.fsencode(models) + b"/\xff\x1b[2J.gguf"
    os.rename(models / "wrong.gguf", odd)  # noqa: PTH104 - a Path can't hold these bytes
    done = subprocess.run(
        [*command, "check", odd, "-q"], env=environment, capture_output=True, check=False
    )
    assert done.stdout.endswith(b"/\\xff\\x1b[2J.gguf: 1 error, llama\n")
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("select", "against", "verdict"),
    [
        ("KV", (), "CLEAN"),
        ("KV,TOK", ("--against", "good.gguf"), "CLEAN"),
        ("KV,TOK022", ("--against", "good.gguf"), "PARTIAL"),
        ("KV,kv-full-attention", (), "PARTIAL"),
        # none of a family could look
        ("RUN", (), "PARTIAL"),
        ("KV,RUN", (), "PARTIAL"),
    ],
)
def test_a_selected_family_is_judged_as_without_a_selection(
    run: Run, write: Callable[..., None], select: str, against: tuple[str, ...], verdict: str
) -> None:
    write("good.gguf", {})
    done = run("check", "sound.gguf", "--select", select, *against)
    assert (done.stdout.partition("  ")[0], done.returncode) == (verdict, 0)
    assert run("check", "sound.gguf", *against).stdout.startswith("CLEAN  ")


def test_a_report_never_replaces_a_model(run: Run, models: Path) -> None:
    before = (models / "wrong.gguf").read_bytes()
    (models / "link").symlink_to("wrong.gguf")
    for output in ("wrong.gguf", "link"):
        done = run("check", "sound.gguf", "-o", output)
        assert (done.returncode, done.stdout) == (2, "")
    assert (models / "wrong.gguf").read_bytes() == before


def test_a_report_replaces_an_earlier_one(run: Run, models: Path) -> None:
    for _ in range(2):
        assert run("check", "sound.gguf", "--format", "json", "-o", "report").returncode == 0
    assert json.loads((models / "report").read_text("utf-8"))["version"] == 1


def test_a_selected_rule_that_cannot_look_is_no_clean_audit(run: Run) -> None:
    for rule in ("KV103", "RUN001"):
        done = run("check", "sound.gguf", "--select", rule)
        assert done.stdout.startswith("PARTIAL"), done.stdout


def test_a_report_never_replaces_what_it_was_held_against(run: Run, models: Path) -> None:
    config = models / "config.json"
    config.write_text('{"architectures": []}', "utf-8")
    assert (
        run("check", "sound.gguf", "--against", "config.json", "-o", "config.json").returncode == 2
    )
    assert config.read_text("utf-8") == '{"architectures": []}'


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sound.gguf"], 0, ""),
        (["wrong.gguf"], 1, "1 model: 1 error, 0 warnings, 0 infos"),
        (["gone.gguf"], 3, "1 model: 0 errors, 0 warnings, 0 infos, 1 not fully audited"),
        (["gone.gguf", "-q"], 3, ""),
    ],
)
def test_who_writes_a_report_elsewhere_hears_what_is_wrong(
    run: Run, arguments: list[str], code: int, said: str
) -> None:
    done = run("check", *arguments, "--format", "json", "-o", "report.json")
    told = f"gguf-audit: {said} (the report is in report.json)\n" if said else ""
    assert (done.returncode, done.stdout, done.stderr) == (code, "", told)


@pytest.mark.parametrize(
    "wanted", ["json", "jsonl", "sarif", "junit", "github", "markdown", "html"]
)
def test_every_format_replaces_its_own_report(run: Run, models: Path, wanted: str) -> None:
    for targets in (["wrong.gguf"], ["missing.gguf"], ["sound.gguf"], ["empty"]):
        (models / "empty").mkdir(exist_ok=True)
        done = run("check", *targets, "--format", wanted, "-o", "report", FORCE_COLOR="1")
        assert done.returncode in (0, 1, 3), done.stderr
        assert (done.stdout, bool(done.stderr)) == ("", done.returncode != 0)
        written = (models / "report").read_text("utf-8")
        assert written == run("check", *targets, "--format", wanted, FORCE_COLOR="").stdout
        assert "\x1b" not in written


def test_one_audit_has_as_many_reports_as_are_asked_for(run: Run, models: Path) -> None:
    formats = ["json", "jsonl", "sarif", "junit", "github", "markdown", "html", "text"]
    asked = [f"--report={each}=report.{each}" for each in formats]
    done = run("check", "wrong.gguf", "--format", "github", *asked)
    assert (done.returncode, done.stderr) == (1, "")
    for each in formats:
        alone = run("check", "wrong.gguf", "--format", each).stdout
        assert (models / f"report.{each}").read_text("utf-8") == alone, each
    assert done.stdout == (models / "report.github").read_text("utf-8")


def test_a_report_that_is_refused_leaves_the_others_unwritten(run: Run, models: Path) -> None:
    (models / "a").write_text("CLEAN  old\n", "utf-8")
    done = run("check", "sound.gguf", "--report", "json=a", "--report", "html=wrong.gguf")
    assert (done.returncode, done.stdout) == (2, "")
    assert (models / "a").read_text("utf-8") == "CLEAN  old\n"


def test_a_folder_that_takes_no_file_is_told_before_the_audit(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> bool:
        return False  # to root, every folder is open

    monkeypatch.setattr(os, "access", closed)
    done = run("check", "sound.gguf", "--report", "json=report")
    assert (done.returncode, done.stdout) == (2, "")
    assert "can't write 'report': Permission denied" in " ".join(done.stderr.split())


def test_a_report_that_fails_leaves_the_others_whole(run: Run, models: Path, full: str) -> None:
    done = run("check", "sound.gguf", "-q", "--report", "json=a", "--report", f"html={full}")
    assert done.returncode == 3
    assert done.stderr == "gguf-audit: can't write '/dev/full': No space left on device\n"
    assert done.stdout == "CLEAN  sound.gguf: nothing found, llama\n"
    assert json.loads((models / "a").read_text("utf-8"))["version"] == 1


def test_junit_and_the_exit_code_agree(run: Run) -> None:
    for options in ([], ["--fail-on", "never"], ["--severity", "TOK003=info"]):
        done = run("check", "wrong.gguf", "--format", "junit", *options)
        assert f'failures="{done.returncode}"' in done.stdout


@pytest.mark.parametrize("wanted", ["sarif", "github"])
def test_paths_are_those_of_the_repository(run: Run, models: Path, wanted: str) -> None:
    root = {"GITHUB_WORKSPACE": str(models.parent)}
    done = run("check", "wrong.gguf", "--format", wanted, **root)
    assert "models/wrong.gguf" in done.stdout
    assert "models/models" not in done.stdout
    elsewhere = {"GITHUB_WORKSPACE": str(models.parent / "other")}
    assert "models/wrong" not in run("check", "wrong.gguf", "--format", wanted, **elsewhere).stdout


def test_a_dash_is_stdout(run: Run, models: Path) -> None:
    assert run("check", "sound.gguf", "-q", "-o", "-").stdout.startswith("CLEAN  sound.gguf")
    assert not (models / "-").exists()


def test_a_pipe_that_nobody_reads_is_refused_at_once(spawn: Run, models: Path) -> None:
    os.mkfifo(models / "pipe")
    done = spawn("check", "sound.gguf", "-o", "pipe")
    assert (done.returncode, done.stdout) == (2, "")
    assert "can't write 'pipe': no process reads it" in done.stderr


def test_a_pipe_that_somebody_reads_gets_the_report(
    command: list[str], models: Path, environment: dict[str, str]
) -> None:
    os.mkfifo(models / "pipe")
    reader = os.open(models / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        arguments = [*command, "check", "sound.gguf", "-q", "-o", "pipe"]
        done = subprocess.run(arguments, cwd=models, env=environment, check=False)
        assert done.returncode == 0
        assert os.read(reader, 1000) == b"CLEAN  sound.gguf: nothing found, llama\n"
    finally:
        os.close(reader)


def test_stdout_by_its_name_keeps_what_the_file_holds(
    command: list[str], models: Path, environment: dict[str, str]
) -> None:
    log = models / "log"
    log.write_text("before\n", "utf-8")
    with log.open("ab") as file:
        arguments = [*command, "check", "sound.gguf", "-q", "-o", "/dev/stdout"]
        done = subprocess.run(arguments, cwd=models, env=environment, stdout=file, check=False)
    assert done.returncode == 0
    assert log.read_text("utf-8") == "before\nCLEAN  sound.gguf: nothing found, llama\n"


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="the kernel's log can't be read")
@pytest.mark.parametrize("option", ["-o", "--sums"])
def test_a_regular_file_without_an_end_is_not_waited_for(spawn: Run, option: str) -> None:
    done = spawn("check", "sound.gguf", option, "/proc/kmsg")
    assert done.returncode == 3
    assert done.stderr == "gguf-audit: can't write '/proc/kmsg': No such file or directory\n"


def test_a_socket_is_refused(run: Run) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        done = run("check", "sound.gguf", "-o", "socket")
    assert done.returncode == 2
    assert "neither a file nor a device" in " ".join(done.stderr.split())


def test_a_disk_that_fills_leaves_the_old_report_and_nothing_half_written(
    command: list[str], models: Path, environment: dict[str, str]
) -> None:
    (models / "report").write_text("CLEAN  old\n", "utf-8")
    before = sorted(path.name for path in models.iterdir())
    program = command[-1].replace(
        "import sys; ",
        # Python would cut its own compiled modules short too, and leave them.
        "import resource, signal, sys; sys.dont_write_bytecode = True; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); ",
    )
    arguments = [*command[:-1], program, "check", "wrong.gguf", "-o", "report"]
    done = subprocess.run(
        arguments, cwd=models, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "gguf-audit: can't write 'report': File too large\n"
    assert (models / "report").read_text("utf-8") == "CLEAN  old\n"
    assert sorted(path.name for path in models.iterdir()) == before


def test_an_interrupt_leaves_nothing_half_written(
    command: list[str], models: Path, environment: dict[str, str]
) -> None:
    # SIGINT arrives when the unfinished file is to become the report.
    program = command[-1].replace(
        "import sys; ",
        "import os, signal, sys; sys.addaudithook(lambda event, _: "
        "os.kill(os.getpid(), signal.SIGINT) if event == 'os.rename' else None); ",
    )
    before = sorted(path.name for path in models.iterdir())
    arguments = [*command[:-1], program, "check", "wrong.gguf", "-o", "report"]
    done = subprocess.run(arguments, cwd=models, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
    assert sorted(path.name for path in models.iterdir()) == before

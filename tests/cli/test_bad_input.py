"""Input that can't be audited: one clear line each, exit code 3, and the rest goes on."""

from __future__ import annotations

import errno
import io
import json
import os
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import jsonschema
import pytest

from gguf_audit.testing import build_gguf

Run = Callable[..., CompletedProcess[str]]

OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 253113024\n"
#: Ends within the second key of two.
CUT = build_gguf({"general.architecture": "llama", "llama.block_count": 1})[:-6]
SCHEMA = Path(__file__).parents[2] / "auditor" / "gguf_audit" / "report" / "schema.json"


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data.pkl", "")
    return packed.getvalue()


#: Content -> code of the error and words of its line.
FILES: dict[str, tuple[bytes, str, list[str]]] = {
    "empty": (b"", "malformed", ["the file is empty"]),
    "magic alone": (b"GGUF", "malformed", ["ends inside the version"]),
    "truncated header": (
        CUT,
        "malformed",
        ["the file ends inside the type of the value", "2 missing"],
    ),
    "web page": (b"<!DOCTYPE html><html>Sign in</html>", "malformed", ["web page", "download"]),
    "LFS pointer": (POINTER.encode(), "malformed", ["Git LFS pointer", "git lfs pull"]),
    "zip": (zipped(), "unsupported", ["zip archive", "convert"]),
    "something else": (b"\x00\x01\x02\x03" * 64, "malformed", ["GGUF"]),
}


def problems(done: CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the errors of a JSON report that fits its schema, target by target."""
    report = json.loads(done.stdout)
    jsonschema.validate(report, json.loads(SCHEMA.read_text("utf-8")))
    return [error for subject in report["subjects"] for error in subject["errors"]]


def because(done: CompletedProcess[str]) -> str:
    """Return the one line that says why something wasn't audited."""
    said = ("    because ", "    not done ")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(said)]
    return line[len(said[1]) :].strip()


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_no_model(run: Run, models: Path, kind: str) -> None:
    content, code, words = FILES[kind]
    (models / "bad.gguf").write_bytes(content)
    done = run("check", "bad.gguf")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("NOT AUDITED  bad.gguf\n")
    assert [word for word in words if word not in because(done)] == []
    (problem,) = problems(run("check", "bad.gguf", "--format", "json"))
    assert (problem["code"], problem["where"]["file"]) == (code, "bad.gguf")


def _missing(_: Path) -> str:
    return "missing.gguf"


def _no_models(models: Path) -> str:
    (models / "empty").mkdir()
    (models / "empty" / "README.md").touch()
    return "empty"


def _dangling(models: Path) -> str:
    (models / "link.gguf").symlink_to("gone.gguf")
    return "link.gguf"


def _pipe(models: Path) -> str:
    os.mkfifo(models / "pipe.gguf")
    return "pipe.gguf"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_missing, "can't read missing.gguf: No such file or directory"),
        (_no_models, "empty has no .gguf file in it"),
        (_dangling, "can't read link.gguf: No such file or directory"),
        (_pipe, "can't read pipe.gguf: it is a named pipe, not a regular file"),
    ],
)
def test_bytes_that_cannot_be_had(
    run: Run, models: Path, make: Callable[[Path], str], words: str
) -> None:
    target = make(models)
    done = run("check", target)
    assert (done.returncode, done.stderr, because(done)) == (3, "", words)
    (problem,) = problems(run("check", target, "--format", "json"))
    assert (problem["code"], problem["message"]) == ("source", words)


@contextmanager
def _as_anybody() -> Generator[None]:
    """Give up root's power to read everything, where a test runs as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_without_permission(run: Run, models: Path) -> None:
    (models / "secret.gguf").write_bytes(CUT)
    (models / "secret.gguf").chmod(0)
    # What is imported when it is first needed may be readable only for root.
    run("check", "sound.gguf")
    with _as_anybody():
        done = run("check", "secret.gguf")
    assert (done.returncode, done.stderr) == (3, "")
    assert because(done) == "can't read secret.gguf: Permission denied"


def test_a_disk_that_fails_on_one_file_of_many(
    run: Run, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = (models / "sound.gguf").stat().st_ino
    read = os.read

    def read_or_fail(descriptor: int, length: int) -> bytes:
        if os.fstat(descriptor).st_ino == failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(descriptor, length)

    monkeypatch.setattr(os, "read", read_or_fail)
    done = run("check", ".", "--format", "json")
    sound, wrong = json.loads(done.stdout)["subjects"]
    assert done.returncode == 1
    assert (sound["status"], [each["message"] for each in sound["errors"]]) == (
        "not-audited",
        ["can't read sound.gguf: Input/output error"],
    )
    assert [each["rule"] for each in wrong["findings"]] == ["TOK003"]
    (models / "wrong.gguf").unlink()
    assert run("check", ".").returncode == 3


def _folder(models: Path, name: str, content: bytes) -> str:
    (models / "reference").mkdir()
    (models / "reference" / name).write_bytes(content)
    return "reference"


def _unreadable(models: Path) -> str:
    return _folder(models, "config.json", b'{"architectures": ["Llama')


def _no_text(models: Path) -> str:
    return _folder(models, "config.json", bytes(range(256)))


def _no_config(models: Path) -> str:
    return _folder(models, "README.md", b"")


def _broken_gguf(models: Path) -> str:
    path = models / "cut.gguf"
    path.write_bytes(CUT)
    return str(path)


def _almost_a_card(_: Path) -> str:
    return "google/gemma-3-270"


def _unknown(_: Path) -> str:
    return "nowhere/nothing"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_unreadable, ["config.json is no JSON", "line 1, column 20"]),
        (_no_text, ["config.json is no UTF-8 at byte 128"]),
        (_no_config, ["reference has no config.json"]),
        (_broken_gguf, ["the file ends inside the type of the value"]),
        (_almost_a_card, ["no built-in card", "did you mean google/gemma-3-270m"]),
        (_unknown, ["nowhere/nothing: no such file or folder"]),
    ],
)
def test_a_reference_that_cannot_be_read(
    run: Run, models: Path, make: Callable[[Path], str], words: list[str]
) -> None:
    reference = make(models)
    done = run("check", "sound.gguf", "--against", reference)
    assert (done.returncode, done.stderr) == (3, "")
    assert [word for word in words if word not in because(done)] == []
    (problem,) = problems(run("check", "sound.gguf", "--against", reference, "--format", "json"))
    assert problem["code"] == "reference"


def test_a_reference_out_of_reach_hides_no_finding(run: Run) -> None:
    done = run("check", "wrong.gguf", "--against", "nowhere/nothing")
    assert done.returncode == 1
    assert "TOK003" in done.stdout
    assert "nowhere/nothing: no such file or folder" in because(done)


def test_the_other_targets_are_audited(run: Run) -> None:
    targets = ("missing.gguf", "sound.gguf", "wrong.gguf")
    done = run("check", *targets, "--format", "json")
    report = json.loads(done.stdout)
    found = [(subject["target"], subject["status"]) for subject in report["subjects"]]
    assert found == list(zip(targets, ("not-audited", "clean", "findings"), strict=True))
    assert report["summary"]["not_audited"] == 1
    assert done.returncode == 1, "a finding says more than a gap"
    assert run("check", *targets, "--fail-on", "never").returncode == 3


@pytest.mark.parametrize("bad_first", [True, False])
def test_a_bad_file_in_a_folder_hides_no_other(run: Run, models: Path, bad_first: bool) -> None:
    (models / ("a.gguf" if bad_first else "z.gguf")).write_bytes(b"GGUF")
    report = json.loads(run("check", ".", "--format", "json").stdout)
    assert sorted(subject["status"] for subject in report["subjects"]) == [
        "clean",
        "findings",
        "not-audited",
    ]


def test_no_target_is_wrong_usage(run: Run) -> None:
    done = run("check")
    assert (done.returncode, done.stdout) == (2, "")
    assert "TARGET" in done.stderr

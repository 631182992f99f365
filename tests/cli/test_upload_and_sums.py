"""``--matches`` and ``--sums``: which bytes are where, and which were audited."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gguf_audit.errors import MalformedError
from gguf_audit.sources import FileSource, MemorySource
from gguf_audit.sums import differences, read_sums
from hub_server import FakeHub, Served, content, go_online

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture
def fake(models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    files = {path.name: content(path.read_bytes()) for path in models.iterdir()}
    with Served(FakeHub(files={**files, "README.md": content("# here")})) as fake:
        go_online(monkeypatch, endpoint=fake.url, home=str(tmp_path / "home"))
        yield fake


def subjects(done: Done) -> dict[str, Any]:
    return {subject["target"]: subject for subject in json.loads(done.stdout)["subjects"]}


MATCHES = ("check", "owner/model", "--matches", ".", "--format", "json", "--ignore", "TOK")


def test_an_upload_that_is_what_it_should_be(run: Run, fake: FakeHub) -> None:
    done = run(*MATCHES, HF_HUB_OFFLINE="0")
    found = subjects(done)
    assert {name: (each["kind"], each["errors"]) for name, each in found.items()} == {
        "hf://owner/model/sound.gguf": ("model", []),
        "hf://owner/model/wrong.gguf": ("model", []),
        "owner/model": ("set", []),
    }
    assert found["owner/model"]["status"] == "clean"
    # Nothing is downloaded: what has the same sha256 is read here.
    assert [request.path for request in fake.requests] == ["/api/models/owner/model/revision/main"]


def test_an_upload_that_is_not(run: Run, fake: FakeHub, models: Path) -> None:
    fake.files["sound.gguf"] = content(fake.files["sound.gguf"].head[:-1] + b"x")
    fake.files["old.gguf"] = content(b"GGUF")
    (models / "README.md").write_text("another one, which nobody compares")
    (models / "sub").mkdir()
    (models / "sub" / "left.gguf").write_bytes(b"GGUF")
    done = run(*MATCHES, HF_HUB_OFFLINE="0")
    findings = subjects(done)["owner/model"]["findings"]
    assert [(each["rule"], each["severity"], each["where"]["file"]) for each in findings] == [
        ("PKG020", "warning", "old.gguf"),
        ("PKG020", "error", "sound.gguf"),
        ("PKG020", "error", "sub/left.gguf"),
    ]
    assert [each["fix"] for each in findings] == [
        None,
        "hf upload owner/model ./sound.gguf sound.gguf",
        "hf upload owner/model ./sub/left.gguf sub/left.gguf",
    ]
    assert done.returncode == 1
    assert run(*MATCHES, "--select", "KV", HF_HUB_OFFLINE="0").returncode == 1


def test_what_can_not_be_matched_is_said(run: Run, fake: FakeHub) -> None:
    done = run("check", "sound.gguf", "--matches", ".", "--format", "json", HF_HUB_OFFLINE="0")
    [audited, unmatched] = json.loads(done.stdout)["subjects"]
    assert (audited["errors"], unmatched["kind"]) == ([], "set")
    assert unmatched["status"] == "not-audited"
    assert [error["message"] for error in unmatched["errors"]] == [
        "--matches .: sound.gguf is no repository that the Hub could be asked for"
    ]
    assert done.returncode == 3
    none = run("check", "owner/model", "--matches", "none", HF_HUB_OFFLINE="0")
    assert none.returncode == 1
    assert "none" in none.stdout
    assert fake.requests
    told = run("check", "sound.gguf", "--matches", ".", HF_HUB_OFFLINE="0").stdout
    assert told.splitlines()[-1] == ("1 model: 0 errors, 0 warnings, 0 infos, 1 not fully audited")


def test_a_repository_that_can_not_be_listed_is_told_of_once(run: Run) -> None:
    done = run("check", "owner/model", "--matches", ".", "--offline")
    why = "--offline or HF_HUB_OFFLINE is set"
    assert done.stdout.splitlines() == [
        "NOT AUDITED  owner/model",
        f"    because   no such file or folder here; {why}, and the local Hub cache has no .gguf file of owner/model",
        "",
        "1 model: 0 errors, 0 warnings, 0 infos, 1 not fully audited",
    ]
    assert done.returncode == 3


def test_an_upload_that_could_not_be_looked_at_leaves_nothing_stale(
    run: Run, fake: FakeHub, models: Path
) -> None:
    fake.files["sound.gguf"] = content(fake.files["sound.gguf"].head[:-1] + b"x")
    options = ("owner/model", "--ignore", "TOK", "--format", "json", "--matches")
    (models / "old.json").write_text(run("check", *options, ".", HF_HUB_OFFLINE="0").stdout)
    held = ("--baseline", "old.json")
    again = json.loads(run("check", *options, ".", *held, HF_HUB_OFFLINE="0").stdout)
    assert (again["baseline"]["stale"], again["summary"]["suppressed"]) == ([], 1)
    unseen = json.loads(run("check", *options, "nowhere", *held, HF_HUB_OFFLINE="0").stdout)
    assert [subject["status"] for subject in unseen["subjects"]][-1] == "not-audited"
    assert unseen["baseline"]["stale"] == []


def test_sums_pin_what_was_audited(run: Run, fake: FakeHub, models: Path) -> None:
    done = run("check", ".", "owner/model:sound.gguf", "--sums", "sums.json", HF_HUB_OFFLINE="0")
    assert done.returncode == 1
    document = json.loads((models / "sums.json").read_text("utf-8"))
    assert (document["version"], document["tool"]["name"]) == (1, "gguf-audit")
    assert [(each["target"], each["sha256"], each["status"]) for each in document["files"]] == [
        (name, hashlib.sha256((models / file).read_bytes()).hexdigest(), status)
        for name, file, status in (
            ("sound.gguf", "sound.gguf", "clean"),
            ("wrong.gguf", "wrong.gguf", "findings"),
            ("owner/model:sound.gguf", "sound.gguf", "clean"),
        )
    ]
    assert fake.count("cdn")[0] == 1
    sums = read_sums(FileSource(models / "sums.json"))
    assert list(differences(sums, sums)) == []
    # Written again over itself, and over nothing else.
    assert run("check", "sound.gguf", "--sums", "sums.json").returncode == 0
    assert len(read_sums(FileSource(models / "sums.json"))) == 1
    refused = run("check", "sound.gguf", "--sums", "wrong.gguf")
    assert refused.returncode == 2
    assert "no report" in refused.stderr
    other = list(differences(read_sums(FileSource(models / "sums.json")), sums))
    assert other == ["wrong.gguf is not in the manifest"]


def test_a_file_that_was_changed_is_told(run: Run, models: Path) -> None:
    run("check", "sound.gguf", "--sums", "before.json")
    data = bytearray((models / "sound.gguf").read_bytes())
    data[-1] ^= 1
    (models / "sound.gguf").write_bytes(data)
    run("check", "sound.gguf", "--sums", "after.json")
    before, after = (read_sums(FileSource(models / name)) for name in ("before.json", "after.json"))
    [said] = differences(before, after)
    assert said.startswith("sound.gguf is not the file in the manifest: ")


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"version": 2, "files": []}', '{"version": 1, "files": [{}]}']
)
def test_what_is_no_manifest(text: str) -> None:
    with pytest.raises(MalformedError):
        read_sums(MemorySource("sums.json", text.encode()))

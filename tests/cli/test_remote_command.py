"""The command on remote targets: what is said, what is never said, how it ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hub_server import COMMIT, TOKEN, FakeHub, Served, content
from web_server import FakeWeb, Reply

Done = subprocess.CompletedProcess[str]
Check = Callable[..., Done]


@pytest.fixture
def fake(models: Path) -> Iterator[FakeHub]:
    files = {path.name: content(path.read_bytes()) for path in models.iterdir()}
    with Served(FakeHub(files=files)) as fake:
        yield fake


@pytest.fixture
def check(spawn: Check, fake: FakeHub, tmp_path: Path) -> Check:
    def check(*arguments: str, **more: str) -> Done:
        hub = {"HF_ENDPOINT": fake.url, "HF_HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"}
        return spawn("check", *arguments, **{**hub, **more})

    return check


def test_a_repository_is_audited_and_what_it_took_is_told(check: Check, fake: FakeHub) -> None:
    done = check("owner/model", "-v")
    assert done.returncode == 1
    assert done.stdout.startswith("CLEAN  hf://owner/model/sound.gguf")
    assert f"    source    owner/model at {COMMIT} (the Hub): " in done.stdout
    assert " bytes in 3 requests" in done.stdout
    assert done.stderr == ""
    assert len(fake.requests) == 5


def test_the_values_of_remote_tensors_are_not_fetched(check: Check) -> None:
    done = check("owner/model:sound.gguf", "-v")
    assert "no match  PKG050, WT008: of a remote file only the header is read" in done.stdout
    asked = check("owner/model:sound.gguf", "--select", "WT008")
    assert asked.stdout.startswith("PARTIAL")
    assert "skipped   WT008: of a remote file only the header is read" in asked.stdout


def test_several_processes_share_a_repository(check: Check) -> None:
    one = json.loads(check("owner/model", "--format", "json", "--jobs", "1").stdout)
    two = json.loads(check("owner/model", "--format", "json", "--jobs", "2").stdout)
    spent = [subject.pop("source")["requests"] for subject in two["subjects"]]
    for subject in one["subjects"]:
        subject.pop("source")
    assert two == one
    assert spent == [3, 2]


def test_a_token_is_never_printed_nor_sent_elsewhere(check: Check, fake: FakeHub) -> None:
    fake.gated, fake.token = True, TOKEN
    options = ("owner/model:sound.gguf", "-v", "--debug")
    good = check(*options, HF_TOKEN=TOKEN)
    assert good.returncode == 0
    wrong = check(*options, HF_TOKEN=f"{TOKEN}x")
    none = check(*options)
    for done in (wrong, none):
        assert done.returncode == 3
        assert "owner/model is gated: accept its licence at" in done.stdout.replace(
            "\n" + " " * 14, " "
        )
    for done in (good, wrong, none):
        assert TOKEN not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    sent = {(request.host, request.authorization) for request in fake.requests}
    assert ("cdn", None) in sent
    assert not any(host == "cdn" and token for host, token in sent)


def test_one_address_that_fails_leaves_the_others_audited(check: Check, models: Path) -> None:
    files = {f"/{name}": (models / name).read_bytes() for name in ("sound.gguf", "wrong.gguf")}
    with FakeWeb(files=files) as web:
        web.fault = lambda _, usual: Reply(status=403) if usual.status == 404 else usual
        targets = [f"{web.url}/{name}?sign=secret" for name in ("none.gguf", "sound.gguf")]
        done = check(*targets, "--format", "json")
    assert done.returncode == 3
    first, second = json.loads(done.stdout)["subjects"]
    shown = f"{web.url}/none.gguf?..."
    assert (first["target"], first["status"]) == (shown, "not-audited")
    assert first["errors"][0]["message"].startswith(
        f"can't read {shown}: the server doesn't allow it (status 403)"
    )
    assert (second["errors"], second["source"]["requests"]) == ([], 1)
    assert "secret" not in done.stdout + done.stderr


def test_a_file_system_that_nobody_serves_is_not_audited(check: Check) -> None:
    pytest.importorskip("fsspec", reason="the extra fsspec isn't installed")
    pytest.importorskip("requests", reason="fsspec asks webhdfs with it")
    done = check("webhdfs://127.0.0.1:9/models", HF_HUB_OFFLINE="0")
    assert done.returncode == 3
    assert done.stdout.startswith("NOT AUDITED  webhdfs://127.0.0.1:9/models")
    assert "can't read webhdfs://127.0.0.1:9/models: Connection refused" in done.stdout


def test_a_redirect_from_the_internet_leads_to_no_host_of_ours(check: Check, models: Path) -> None:
    sound = (models / "sound.gguf").read_bytes()
    first, inside = "http://9.9.9.9/sound.gguf", "http://169.254.169.254/latest"
    with FakeWeb(files={first: sound, inside: sound, "http://else.test/m.gguf": sound}) as proxy:

        def lead(to: str) -> Done:
            proxy.asked.clear()
            proxy.fault = lambda number, usual: (
                usual if number else Reply(status=302, headers={"location": to})
            )
            return check(first, HTTP_PROXY=proxy.url, http_proxy=proxy.url, HF_HUB_OFFLINE="0")

        refused = lead(inside)
        assert refused.returncode == 3
        assert (
            f"can't read {first}: 9.9.9.9 redirects to 169.254.169.254, which is no host of the"
            " internet: name that address itself if it is meant"
        ) in " ".join(refused.stdout.split())
        assert [each.path for each in proxy.asked] == [first]
        # Where the proxy gets to isn't known here.
        assert lead("http://else.test/m.gguf").returncode == 0
        # Whoever names it may mean it.
        proxy.fault = None
        named = check(inside, HTTP_PROXY=proxy.url, http_proxy=proxy.url, HF_HUB_OFFLINE="0")
        assert named.returncode == 0


def test_stdin_and_offline_are_refused(check: Check) -> None:
    done = check("-")
    assert done.returncode == 3
    assert "can't be read from stdin" in done.stdout
    offline = check("owner/model", "--offline")
    assert offline.returncode == 3
    assert "--offline or HF_HUB_OFFLINE is set" in offline.stdout.replace("\n" + " " * 14, " ")

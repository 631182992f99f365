"""The command and a Hub: what is said, what is asked, what is imported."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_subjects import CONFIG
from hub_server import COMMIT, TOKEN, FakeHub, Served, content, safetensors

Done = subprocess.CompletedProcess[str]
Spawn = Callable[..., Done]
CARD = "google/gemma-3-270m"


@pytest.fixture
def fake() -> Iterator[FakeHub]:
    files = {"config.json": content(dict(CONFIG)), "model.safetensors": safetensors(100 << 20)}
    with Served(FakeHub(files=files)) as fake:
        yield fake


@pytest.fixture
def check(spawn: Spawn, tmp_path: Path) -> Spawn:
    """Return a function that checks the sound file with a Hub in the environment."""

    def check(*arguments: str, endpoint: str, home: str = "home", **more: str) -> Done:
        hub = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / home), "NO_PROXY": "127.0.0.1"}
        return spawn("check", "sound.gguf", *arguments, **hub, **more)

    return check


def test_the_report_says_that_it_was_the_hub(check: Spawn, fake: FakeHub) -> None:
    done = check("--against", "owner/model", "--format", "json", endpoint=fake.url)
    [subject] = json.loads(done.stdout)["subjects"]
    assert subject["reference"] == {"id": "owner/model", "revision": COMMIT, "origin": "hub"}
    assert (subject["errors"], done.stderr) == ([], "")
    assert [request.path for request in fake.requests] == [
        "/api/models/owner/model/revision/main",
        f"/owner/model/resolve/{COMMIT}/config.json",
        # the names and shapes of the tensors, from the start of the file
        f"/owner/model/resolve/{COMMIT}/model.safetensors",
        "/model.safetensors",
    ]
    said = check("--against", "owner/model", endpoint=fake.url).stdout
    assert (
        f"    against   owner/model at {COMMIT} (the Hub); it says nothing of chat templates"
        in said
    )


def test_a_token_is_never_printed(check: Spawn, fake: FakeHub) -> None:
    fake.gated, fake.token = True, TOKEN
    options = "--against", "owner/model", "-v", "--debug"
    good = check(*options, endpoint=fake.url, HF_TOKEN=TOKEN)
    assert "(the Hub)" in good.stdout
    wrong = check(*options, endpoint=fake.url, HF_TOKEN=f"{TOKEN}x", home="other")
    odd = check(*options, endpoint=fake.url, HF_TOKEN=f"{TOKEN}\x0bx")
    assert {request.authorization for request in fake.requests} >= {f"Bearer {TOKEN}"}
    for done in (good, wrong, odd):
        assert TOKEN not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_a_hub_that_hangs_is_given_up(check: Spawn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = "--against", CARD, "--format", "json"
        quick = check(*options, "--offline", endpoint=endpoint)
        start = time.monotonic()
        done = check(*options, endpoint=endpoint)
        seconds = time.monotonic() - start
    for each in (quick, done):
        [subject] = json.loads(each.stdout)["subjects"]
        assert (subject["reference"]["id"], subject["reference"]["origin"]) == (CARD, "card")
    # Three, and a start on a busy machine.
    assert 2 < seconds < 20
    assert done.stderr == ""


def test_a_hub_that_is_not_there_is_said(check: Spawn) -> None:
    said = check("--against", CARD, endpoint="http://127.0.0.1:9").stdout.replace(
        "\n" + " " * 14, " "
    )
    assert (
        f"against   {CARD} (built-in card); http://127.0.0.1:9 can't be reached: Connection refused"
        in said
    )
    done = check("--against", "owner/none", endpoint="http://127.0.0.1:9")
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("options", "imported"),
    [
        ([], False),
        (["--against", CARD, "--offline"], False),
        (["--against", "owner/none", "--offline"], False),
        (["--against", "auto"], False),
        (["--against", CARD], True),
    ],
)
def test_huggingface_hub_is_imported_to_ask_the_hub(
    command: list[str], spawn: Spawn, options: list[str], imported: bool
) -> None:
    spy = "import atexit, sys; atexit.register(lambda: print('huggingface_hub' in sys.modules))\n"
    command[-1] = spy + command[-1]
    done = spawn("check", "sound.gguf", *options)
    assert done.stdout.splitlines()[-1] == str(imported)

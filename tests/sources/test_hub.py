from __future__ import annotations

import json
import socket
import threading
import time
import traceback
import tracemalloc
from pathlib import Path

import pytest

from gguf_audit.checkpoint import StoredTensor
from gguf_audit.errors import LimitError, MalformedError, SourceError
from gguf_audit.formats.checkpoint import OPTIONAL, read_checkpoint
from gguf_audit.formats.safetensors import read_header, read_tensors
from gguf_audit.limits import LIMITS
from gguf_audit.sources.hub import Hub, HubUnavailableError
from hub_server import (
    COMMIT,
    CONFIG,
    MIB,
    NO_HEADERS,
    TOKEN,
    Answer,
    Content,
    FakeHub,
    always,
    content,
    hang,
    safetensors,
)

# What is asked for


@pytest.mark.parametrize("revision", [None, "main", "v1/x", COMMIT])
def test_a_revision_is_pinned_to_its_commit(fake: FakeHub, hub: Hub, revision: str | None) -> None:
    tree = hub.pin("owner/model", revision)
    fake.commit = "f" * 40  # The branch goes on meanwhile.
    assert (tree.commit, tree.identity) == (COMMIT, f"owner/model@{COMMIT}")
    assert tree.names() == ("config.json", "model.safetensors")
    assert fake.count() == (1, fake.count()[1])


def test_names_of_sub_folders_are_their_own(fake: FakeHub, hub: Hub) -> None:
    fake.files["additional_chat_templates/tool.jinja"] = content("x")
    tree = hub.pin("owner/model")
    assert tree.names() == ("config.json", "model.safetensors")
    assert tree.names("additional_chat_templates") == ("additional_chat_templates/tool.jinja",)
    assert tree.open("additional_chat_templates/tool.jinja").read(0, 1) == b"x"


def test_of_weights_only_the_header_is_fetched(fake: FakeHub, hub: Hub) -> None:
    tensors = read_tensors(hub.pin("owner/model"))
    assert tensors == {"model.layers.0.weight": StoredTensor(dtype="U8", shape=(100 * MIB,))}
    # The listing; a redirect and one range of the CDN's.
    assert [(r.host, r.method, r.range) for r in fake.requests] == [
        ("hub", "GET", None),
        ("hub", "GET", "bytes=0-99999"),
        ("cdn", "GET", "bytes=0-99999"),
    ]
    assert fake.count("cdn") == (1, 100_000)


def test_a_long_header_is_fetched_by_appending(fake: FakeHub, hub: Hub) -> None:
    file = fake.files["model.safetensors"] = safetensors(100 * MIB, names=3000)
    assert len(file.head) > 2 * LIMITS.hub_window_bytes
    header = read_header(hub.pin("owner/model").open("model.safetensors"))
    assert len(header) == 3000
    # The Hub has said where it is: the rest comes from there.
    assert [(r.host, r.range) for r in fake.requests] == [
        ("hub", None),
        ("hub", "bytes=0-99999"),
        ("cdn", "bytes=0-99999"),
        ("cdn", f"bytes=100000-{len(file.head) - 1}"),
    ]
    assert fake.count("cdn") == (2, len(file.head))


def test_an_address_that_is_good_no_more_is_asked_for_again(fake: FakeHub, hub: Hub) -> None:
    file = fake.files["model.safetensors"] = safetensors(100 * MIB, names=3000)
    given: list[str] = []

    def once(served: FakeHub, host: str, path: str) -> Answer | None:
        del served, path
        given.append(host)
        return (403, NO_HEADERS, b"") if given[-2:] == ["cdn", "cdn"] else None

    tree = hub.pin("owner/model")
    fake.fault = once
    assert len(read_header(tree.open("model.safetensors"))) == 3000
    assert given == ["hub", "cdn", "cdn", "hub", "cdn"]
    assert fake.count("cdn") == (3, len(file.head))


def test_a_short_file_is_fetched_whole_and_once(fake: FakeHub, hub: Hub) -> None:
    file = fake.files["model.safetensors"] = safetensors(7)
    source = hub.pin("owner/model").open("model.safetensors")
    assert len(read_header(source)) == 1
    assert source.read(0, file.size) == file.slice(0, file.size)
    assert fake.count("cdn") == (1, file.size)


def test_a_listing_without_sizes_is_enough(fake: FakeHub, hub: Hub) -> None:
    fake.sizes = False
    tree = hub.pin("owner/model")
    assert tree.open("model.safetensors").size == fake.files["model.safetensors"].size
    assert len(read_header(tree.open("model.safetensors"))) == 1
    assert json.loads(tree.open("config.json").read(0, fake.files["config.json"].size)) == CONFIG


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_every_file_that_a_reference_may_have_is_fetched(
    fake: FakeHub, hub: Hub, name: str
) -> None:
    fake.files[name] = content(b"what it holds")
    file = hub.pin("owner/model").open(name)
    assert file.read(0, file.size) == b"what it holds"


def test_weights_are_never_fetched(fake: FakeHub, hub: Hub) -> None:
    fake.files["pytorch_model.bin"] = content(b"pickle")
    fake.files["model.safetensors"] = Content(b"", 200 * MIB)
    tree = hub.pin("owner/model")
    with pytest.raises(SourceError, match="weights are never fetched"):
        tree.open("model.safetensors").read(150 * MIB, 8)
    with pytest.raises(SourceError, match="only metadata is fetched from the Hub"):
        tree.open("pytorch_model.bin")
    with pytest.raises(
        SourceError, match=r"can't read a.json of owner/model@0123\w+: no such file"
    ):
        tree.open("a.json")
    with pytest.raises(MalformedError, match="it leaves its folder"):
        tree.open("../x.json")
    with pytest.raises(SourceError, match="8 bytes at 209715200 are not in 209715200 bytes"):
        tree.open("model.safetensors").read(200 * MIB, 8)
    assert fake.count() == (1, fake.count()[1])


def test_metadata_goes_into_the_cache_and_comes_out_of_it(fake: FakeHub, hub: Hub) -> None:
    assert read_checkpoint(hub.pin("owner/model"), id="owner/model").config == CONFIG
    path = hub.cache / "models--owner--model" / "snapshots" / COMMIT / "config.json"
    assert json.loads(path.read_bytes()) == CONFIG
    assert not (path.parents[2] / "refs").exists()  # What main is to others stays as it is.
    asked = fake.count()[0]
    assert read_checkpoint(hub.pin("owner/model"), id="owner/model").config == CONFIG
    assert fake.count()[0] == asked + 1


def test_a_cache_that_cannot_be_written_is_done_without(fake: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "hub").write_bytes(b"")  # No folder can be made of it, not even by root.
    hub = Hub(fake.url, cache=tmp_path / "hub")
    assert read_checkpoint(hub.pin("owner/model"), id="owner/model").config == CONFIG
    assert (tmp_path / "hub").read_bytes() == b""


def kept(hub: Hub) -> list[str]:
    """Return what is in the cache, from its folder on."""
    return sorted(path.relative_to(hub.cache).as_posix() for path in hub.cache.rglob("*.*"))


@pytest.mark.parametrize("sizes", [True, False])
def test_no_more_is_taken_in_than_was_said(fake: FakeHub, tmp_path: Path, sizes: bool) -> None:
    fake.sizes = sizes
    limits = LIMITS._replace(config_bytes=63, tokenizer_bytes=63)
    hub = Hub(fake.url, cache=tmp_path / "hub", limits=limits)
    tree = hub.pin("owner/model")
    fake.files["config.json"] = content(json.dumps(CONFIG) + " " * MIB)
    with pytest.raises(HubUnavailableError, match="answers with more than the 63 bytes asked for"):
        tree.open("config.json").read(0, 1)
    assert kept(hub) == []


def test_headers_name_no_place_to_write_to_and_no_host_for_the_token(
    fake: FakeHub, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    tree = hub.pin("owner/model")
    elsewhere = {
        "etag": '"../../../../outside"',
        "x-repo-commit": COMMIT,
        "x-xet-hash": "a" * 64,
        "x-xet-refresh-route": f"{fake.cdn}/token",
    }
    fake.fault = always((200, elsewhere, json.dumps(CONFIG).encode()))
    assert tree.open("config.json").read(0, 1) == b"{"
    assert kept(hub) == ["models--owner--model/snapshots/" + COMMIT + "/config.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["hub"]
    assert fake.count("cdn") == (0, 0)


def test_what_is_in_the_cache_is_never_replaced(hub: Hub) -> None:
    path = hub.cache / "models--owner--model" / "snapshots" / COMMIT / "config.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"of another size")
    assert read_checkpoint(hub.pin("owner/model"), id="owner/model").config == CONFIG
    assert path.read_bytes() == b"of another size"


def test_metadata_of_another_commit_is_refused(fake: FakeHub, hub: Hub) -> None:
    tree = hub.pin("owner/model")
    body = json.dumps(CONFIG).encode()
    fake.fault = always((200, {"x-repo-commit": "f" * 40}, body))
    with pytest.raises(SourceError, match="the Hub sends it from commit ffff"):
        tree.open("config.json").read(0, 1)
    assert kept(hub) == []


# What is refused


def test_a_missing_repository_says_what_to_check(hub: Hub, fake: FakeHub) -> None:
    with pytest.raises(HubUnavailableError) as caught:
        hub.pin("owner/none")
    assert caught.value.message == (
        f"{fake.url} has no repository owner/none, or a private one: no HF_TOKEN is set"
    )


def test_a_missing_revision_is_named(hub: Hub, fake: FakeHub) -> None:
    with pytest.raises(HubUnavailableError) as caught:
        hub.pin("owner/model", "v9")
    assert caught.value.message == f"owner/model has no revision 'v9' at {fake.url}"


@pytest.mark.parametrize(
    ("token", "says"),
    [
        (None, "and set HF_TOKEN to a token of that account"),
        ("hf_other", "with the account that HF_TOKEN belongs to"),
    ],
)
def test_a_gated_repository_says_what_to_do(
    fake: FakeHub, hub: Hub, monkeypatch: pytest.MonkeyPatch, token: str | None, says: str
) -> None:
    fake.gated, fake.token = True, TOKEN
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    tree = hub.pin("owner/model")
    for name in tree.names():
        with pytest.raises(HubUnavailableError) as caught:
            tree.open(name).read(0, 8)
        assert caught.value.message == (
            f"owner/model is gated: accept its licence at {fake.url}/owner/model {says}"
        )
    # The Hub answers, so it may be asked for something else.
    assert hub.pin("owner/model").commit == COMMIT


def test_the_token_is_for_the_hub_alone(
    fake: FakeHub, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.gated, fake.token = True, TOKEN
    fake.files["tokenizer.json"] = content({"model": {"vocab": {}}})
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    tree = hub.pin("owner/model")
    for name in tree.names():
        assert tree.open(name).read(0, 8)
    assert {(request.host, request.authorization) for request in fake.requests} == {
        ("hub", f"Bearer {TOKEN}"),
        ("cdn", None),
    }
    assert fake.count("cdn")[0] >= 2


@pytest.mark.parametrize("odd", ["\x0b", "\xe4"])
def test_a_token_that_is_no_header_value_is_not_quoted(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", f"hf_secret{odd}secret")
    with pytest.raises(HubUnavailableError) as caught:
        hub.pin("owner/model")
    shown = "".join(traceback.format_exception(caught.value))
    assert "can't be reached: a token or an address can't be sent as it is" in shown
    assert "secret" not in shown


def test_a_password_in_the_endpoint_is_not_shown(fake: FakeHub, tmp_path: Path) -> None:
    del fake
    hub = Hub("http://user:secret@127.0.0.1:9", cache=tmp_path)
    with pytest.raises(HubUnavailableError) as caught:
        hub.pin("owner/model")
    assert caught.value.message == "http://127.0.0.1:9 can't be reached: Connection refused"


# What answers wrongly


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((200, NO_HEADERS, bytes(MIB)), "sends whole files for a range"),
        ((206, NO_HEADERS, bytes(100_000)), "the answer doesn't say which range it is"),
        (
            (206, {"content-range": "bytes 8-100007/104857704"}, bytes(100_000)),
            "asked for bytes 0-99999, the answer has 100000 bytes and calls them 8-100007",
        ),
        (
            (206, {"content-range": "bytes 0-99999/999999"}, bytes(100_000)),
            "it has 999999 bytes, the Hub lists 104857704",
        ),
        (
            (206, {"content-range": "bytes 0-99999/104857704"}, bytes(99_999)),
            "the answer has 99999 bytes and calls them 0-99999",
        ),
        (
            (206, {"content-range": "bytes 0-99999/104857704"}, bytes(100_001)),
            "more than the 100000",
        ),
        ((416, NO_HEADERS, b""), r"refuses owner/model \(status 416\)"),
        ((302, {"location": "ftp://127.0.0.1/x"}, b""), "redirects to no https address"),
        ((302, {"location": "//["}, b""), "redirects to no https address"),
        ((302, {"location": "http://127.0.0.1:99999/x"}, b""), "redirects to no https address"),
        ((302, {"location": "/again"}, b""), "redirects more than 5 times"),
        ((206, {"content-encoding": "gzip"}, b""), "sends compressed what it is asked for as"),
    ],
)
def test_a_wrong_answer_to_a_range(fake: FakeHub, hub: Hub, answer: Answer, says: str) -> None:
    assert fake.files["model.safetensors"].size == 104857704
    fake.fault = always(answer, host="cdn")
    with pytest.raises(SourceError, match=says):
        hub.pin("owner/model").open("model.safetensors").read(0, 8)


def test_a_whole_file_instead_of_a_range_is_not_read(fake: FakeHub, hub: Hub) -> None:
    fake.fault = always((200, {"content-length": str(100 * MIB)}, bytes(1000)), host="cdn")
    source = hub.pin("owner/model").open("model.safetensors")
    start = time.monotonic()
    with pytest.raises(HubUnavailableError, match="sends whole files"):
        source.read(0, 8)
    assert time.monotonic() - start < 2.5  # It doesn't wait for the rest.


def test_another_commit_than_the_pinned_one_is_refused(fake: FakeHub, hub: Hub) -> None:
    source = hub.pin("owner/model").open("model.safetensors")
    moved = {"location": f"{fake.cdn}/model.safetensors", "x-repo-commit": "f" * 40}
    fake.fault = always((302, moved, b""))
    with pytest.raises(SourceError, match="the Hub sends it from commit ffff"):
        source.read(0, 8)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[" * 5000,
        b"[]",
        b'{"sha": "main", "siblings": []}',
        b'{"sha": 1, "siblings": []}',
        b'{"sha": "' + COMMIT.encode() + b'"}',
        b'{"sha": "' + COMMIT.encode() + b'", "siblings": [{}]}',
        b'{"sha": "' + COMMIT.encode() + b'", "siblings": [1]}',
        *(
            b'{"sha": "' + COMMIT.encode() + b'", "siblings": [' + entry + b"]}"
            for entry in (
                b'{"rfilename": null}',
                b'{"rfilename": "\\udcff.gguf"}',
                b'{"rfilename": "a.gguf", "size": -1}',
                b'{"rfilename": "a.gguf", "size": true}',
                b'{"rfilename": "a.gguf", "size": 9223372036854775808}',
                b'{"rfilename": "a.gguf", "lfs": {"sha256": 5}}',
            )
        ),
    ],
)
def test_what_is_no_hub(fake: FakeHub, hub: Hub, body: bytes) -> None:
    fake.fault = always((200, NO_HEADERS, body))
    with pytest.raises(HubUnavailableError) as caught:
        hub.pin("owner/model")
    assert caught.value.message == f"{fake.url} doesn't answer as a Hub does"


def test_what_else_the_hub_says_is_skipped(fake: FakeHub, hub: Hub) -> None:
    depths = b",".join([b"[]"] * 1_000_000)
    rest = b'{"sha": "' + COMMIT.encode() + b'", "siblings": [], "x": [' + depths + b"]}"
    fake.fault = always((200, NO_HEADERS, rest))
    tracemalloc.start()
    try:
        assert hub.pin("owner/model").files() == ()
        # What came, in chunks and in one piece: of its million lists there is none.
        assert tracemalloc.get_traced_memory()[1] < 12 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "endpoint", ["file:///etc", "http://[::1", "http://x:99999", "http://", "x"]
)
def test_an_endpoint_that_is_no_address(tmp_path: Path, endpoint: str) -> None:
    with pytest.raises(HubUnavailableError, match="is no http or https address"):
        Hub(endpoint, cache=tmp_path).pin("owner/model")


def test_a_file_of_another_size_than_listed(fake: FakeHub, hub: Hub) -> None:
    tree = hub.pin("owner/model")
    fake.files["config.json"] = content({"changed": True})
    with pytest.raises(SourceError, match="it has 17 bytes, the Hub lists 63"):
        tree.open("config.json").read(0, 1)


# How long it takes


def test_too_many_requests_are_repeated_as_the_hub_asks(fake: FakeHub, hub: Hub) -> None:
    refusals = [(429, {"retry-after": "1"}, b""), (503, NO_HEADERS, b"")]

    def fault(served: FakeHub, host: str, path: str) -> Answer | None:
        del served, host, path
        return refusals.pop(0) if refusals else None

    fake.fault = fault
    start = time.monotonic()
    assert hub.pin("owner/model").commit == COMMIT
    assert 1 < time.monotonic() - start < 10
    assert fake.count()[0] == 3


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            (429, {"retry-after": "60"}, b""),
            "is asked too often (status 429); a token in HF_TOKEN raises its limit",
        ),
        ((503, {"retry-after": "60"}, b""), "fails (status 503)"),
    ],
)
def test_a_hub_that_wants_a_longer_wait_is_not_waited_for(
    fake: FakeHub, hub: Hub, answer: Answer, says: str
) -> None:
    fake.fault = always(answer)
    start = time.monotonic()
    for _ in range(2):
        with pytest.raises(HubUnavailableError) as caught:
            hub.pin("owner/model")
        assert caught.value.message == f"{fake.url} {says}"
    assert time.monotonic() - start < 30
    assert fake.count()[0] == 1  # It isn't asked again.


def test_a_hub_that_keeps_failing_is_left_within_its_time(fake: FakeHub, hub: Hub) -> None:
    fake.fault = always((500, NO_HEADERS, b""))
    start = time.monotonic()
    with pytest.raises(HubUnavailableError, match=r"fails \(status 500\)"):
        hub.pin("owner/model")
    assert time.monotonic() - start < 10
    assert 3 <= fake.count()[0] <= 5


def test_a_hub_that_does_not_answer_costs_three_seconds_once(fake: FakeHub, hub: Hub) -> None:
    fake.fault = hang(6)
    start = time.monotonic()
    for _ in range(3):
        with pytest.raises(HubUnavailableError) as caught:
            hub.pin("owner/model")
        assert caught.value.message == f"{fake.url} doesn't answer"
    assert 2 < time.monotonic() - start < 5.5


def test_a_hub_that_dies_between_two_files(fake: FakeHub, hub: Hub) -> None:
    tree = hub.pin("owner/model")
    fake.fault = hang(6)
    start = time.monotonic()
    for name in tree.names():
        with pytest.raises(HubUnavailableError, match="doesn't answer"):
            tree.open(name).read(0, 8)
    assert 2 < time.monotonic() - start < 5.5


def test_a_hub_that_sends_a_byte_now_and_then(hub: Hub, tmp_path: Path) -> None:
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                while not stop.wait(0.3):
                    try:
                        connection.sendall(b"H" if stop.is_set() else b"HTTP/1.1 200 OK\r\nx: y")
                    except OSError:
                        return

        threading.Thread(target=drip, daemon=True).start()
        slow = Hub(f"http://127.0.0.1:{server.getsockname()[1]}", cache=tmp_path)
        start = time.monotonic()
        with pytest.raises(HubUnavailableError):
            slow.pin("owner/model")
        assert time.monotonic() - start < 5.5
        stop.set()
    del hub


def test_a_broken_connection_is_tried_once_more(fake: FakeHub, tmp_path: Path) -> None:
    del fake
    start = time.monotonic()
    with pytest.raises(HubUnavailableError, match="can't be reached: Connection refused"):
        Hub("http://127.0.0.1:9", cache=tmp_path).pin("owner/model")
    assert time.monotonic() - start < 10


# How much it may cost


def test_requests_and_bytes_have_limits(fake: FakeHub, tmp_path: Path) -> None:
    few = Hub(fake.url, cache=tmp_path / "a", limits=LIMITS._replace(hub_requests=2))
    with pytest.raises(LimitError, match="more than 2 requests are not spent on"):
        few.pin("owner/model").open("model.safetensors").read(0, 8)
    short = Hub(fake.url, cache=tmp_path / "b", limits=LIMITS._replace(hub_bytes=50_000))
    with pytest.raises(LimitError, match="more than 50000 bytes are not spent on"):
        short.pin("owner/model").open("model.safetensors").read(0, 8)


def test_another_reference_may_cost_as_much_again(fake: FakeHub, tmp_path: Path) -> None:
    # A listing and a file; with a warm cache the listing alone.
    hub = Hub(fake.url, cache=tmp_path, limits=LIMITS._replace(hub_requests=2))
    for _ in range(5):
        assert hub.pin("owner/model").open("config.json").read(0, 1) == b"{"


def test_a_long_listing_is_not_read(fake: FakeHub, tmp_path: Path) -> None:
    hub = Hub(fake.url, cache=tmp_path, limits=LIMITS._replace(hub_listing_bytes=100))
    with pytest.raises(HubUnavailableError, match="answers with more than the 100 bytes"):
        hub.pin("owner/model")


def test_nothing_is_printed(
    fake: FakeHub, hub: Hub, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    fake.files["tokenizer.json"] = content({"pad": "x" * 100_000})
    tree = hub.pin("owner/model")
    assert tree.open("tokenizer.json").read(0, 1) == b"{"
    assert tree.open("config.json").read(0, 1) == b"{"
    assert capfd.readouterr() == ("", "")
    assert [record.message for record in caplog.records if record.levelname != "INFO"] == []

"""A header that streams in: what is asked for, and every way in which that goes wrong."""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections.abc import Callable, Iterator

import pytest

from gguf_audit.errors import AuditError, LimitError, SourceError
from gguf_audit.formats.gguf import read_gguf
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources._stream import Address, Streamed, Traffic
from gguf_audit.sources.addresses import shown_url
from gguf_audit.sources.web import WebTree
from gguf_audit.testing import build_gguf
from hub_server import go_online
from web_server import Asked, FakeWeb, Reply

KIB, MIB = 1 << 10, 1 << 20
#: A header of 1 MiB in front of 30 MiB of tensor data.
TOKENS = [f"token {number:06}" for number in range(50_000)]
MODEL = build_gguf(
    {"general.architecture": "llama", "tokenizer.ggml.tokens": [*TOKENS]},
    [("token_embd.weight", (160, 50_000), "F32")],
)
#: What a test waits for at most; nothing in it is a second long.
QUICK = LIMITS._replace(
    remote_patience_seconds=0.5, remote_seconds=1.0, remote_window_bytes=512 * KIB
)

Fault = Callable[[int, Reply], Reply]


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> Iterator[FakeWeb]:
    go_online(monkeypatch, endpoint="http://127.0.0.1:9", home=str(tmp_path))
    with FakeWeb(files={"/models/a.gguf": MODEL}) as web:
        yield web


def source(web: FakeWeb, limits: Limits = LIMITS, path: str = "/models/a.gguf") -> Streamed:
    tree = WebTree(f"{web.url}{path}", limits=limits)
    return tree.open(tree.name)


def failing(web: FakeWeb, fault: Fault, limits: Limits = QUICK) -> str:
    """Return what is said of a file that can't be read."""
    web.fault = fault
    with pytest.raises(AuditError) as caught:
        read_gguf(source(web, limits))
    shown = "".join(traceback.format_exception(caught.value))
    assert "secret" not in shown
    return caught.value.message.replace(web.url, "http://host")


def first(reply: Reply) -> Fault:
    """Answer the first request with this, the others as usual."""
    return lambda number, usual: usual if number else reply


def always(reply: Reply) -> Fault:
    return lambda number, usual: reply if number >= 0 else usual


def every(cut: int | None = None, drip_seconds: float = 0) -> Fault:
    """Answer as usual, as far as that goes."""

    def fault(number: int, usual: Reply) -> Reply:
        del number
        return dataclasses.replace(usual, cut=cut, drip_seconds=drip_seconds)

    return fault


# What is asked for


def test_a_header_is_one_request_that_ends_with_it(web: FakeWeb) -> None:
    traffic = Traffic()
    address = Address(url=f"{web.url}/models/a.gguf", shown="a")
    gguf = read_gguf(Streamed(address, name="a.gguf", traffic=traffic))
    assert gguf.files[0].size_bytes == len(MODEL)
    tokens = gguf.array("tokenizer.ggml.tokens")
    assert tokens is not None
    assert tuple(tokens.items()) == tuple(TOKENS)
    assert [asked.range for asked in web.asked] == ["bytes=0-16777215"]
    header = gguf.files[0].header_bytes
    # A read of 256 KiB, what was taken in ahead of it, and no more of the 30 MiB.
    assert header <= traffic.bytes <= header + 768 * KIB
    assert traffic.requests == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_a_file_of_another_kind_is_left_at_once(web: FakeWeb, ranges: bool) -> None:
    web.ranges = ranges
    web.files["/models/a.gguf"] = b"PK\x03\x04" + bytes(30 * MIB)
    traffic = Traffic()
    address = Address(url=f"{web.url}/models/a.gguf", shown="a")
    with pytest.raises(AuditError, match="zip"):
        read_gguf(Streamed(address, name="a.gguf", traffic=traffic))
    assert traffic.bytes < MIB
    assert traffic.requests == 1


def test_a_server_without_ranges_is_left_at_the_headers_end_too(web: FakeWeb) -> None:
    web.ranges = False
    traffic = Traffic()
    address = Address(url=f"{web.url}/models/a.gguf", shown="a")
    gguf = read_gguf(Streamed(address, name="a.gguf", traffic=traffic))
    assert gguf.files[0].size_bytes == len(MODEL)
    assert gguf.files[0].header_bytes <= traffic.bytes <= gguf.files[0].header_bytes + 768 * KIB
    assert len(web.asked) == 1


def test_a_longer_header_is_gone_on_with_and_never_fetched_twice(web: FakeWeb) -> None:
    gguf = read_gguf(source(web, LIMITS._replace(remote_window_bytes=256 * KIB)))
    assert gguf.files[0].size_bytes == len(MODEL)
    starts = [0, *(256 * KIB * step for step in range(1, len(web.asked)))]
    assert [asked.range for asked in web.asked] == [
        f"bytes={start}-{start + 256 * KIB - 1}" for start in starts
    ]
    assert 4 <= len(web.asked) <= 6


def test_a_shard_is_found_beside_the_one_that_was_named(web: FakeWeb) -> None:
    tree = WebTree(f"{web.url}/a%20b/m-00001-of-00002.gguf?sign=secret#top")
    assert tree.name == "m-00001-of-00002.gguf"
    assert tree.identity == f"{web.url}/a%20b/m-00001-of-00002.gguf?..."
    web.files["/a%20b/m-00002-of-00002.gguf"] = b"GGUF"
    assert tree.open("m-00002-of-00002.gguf").read(0, 4) == b"GGUF"
    assert [asked.path for asked in web.asked] == ["/a%20b/m-00002-of-00002.gguf?sign=secret"]


def test_what_lies_behind_the_last_tensor_is_looked_at_apart(web: FakeWeb) -> None:
    web.files["/models/a.gguf"] = MODEL + b"PK\x03\x04" + bytes(300 * KIB)
    tail = read_gguf(source(web)).files[0].tail
    assert tail is not None
    assert (tail.offset, tail.size_bytes, tail.empty) == (len(MODEL), 300 * KIB + 4, False)
    end = len(MODEL) + 300 * KIB + 4
    assert [asked.range for asked in web.asked] == [
        "bytes=0-16777215",
        f"bytes={len(MODEL)}-{len(MODEL) + 64 * KIB - 1}",
        f"bytes={end - 64 * KIB}-{end - 1}",
    ]
    web.asked.clear()
    web.ranges = False
    with pytest.raises(SourceError, match="the server can't go on from byte"):
        read_gguf(source(web))


def test_weights_are_never_fetched(web: FakeWeb) -> None:
    opened = source(web, LIMITS._replace(header_bytes=MIB))
    with pytest.raises(SourceError, match="tensor data is never fetched"):
        opened.read(2 * MIB, MIB)
    with pytest.raises(SourceError, match=r"8 bytes at \d+ are not in \d+ bytes"):
        opened.read(len(MODEL) - 4, 8)


def test_an_empty_file(web: FakeWeb) -> None:
    web.files["/models/a.gguf"] = b""
    assert source(web).size == 0


# What is got past


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500),
        Reply(status=503, headers={"retry-after": "0"}),
        Reply(status=429, headers={"retry-after": "0"}),
        Reply(cut=-1),
        Reply(headers={"content-range": f"bytes 0-524287/{len(MODEL)}"}, body=MODEL[:KIB], cut=KIB),
        Reply(
            headers={
                "content-range": f"bytes 0-524287/{len(MODEL)}",
                "content-length": str(512 * KIB),
                "etag": '"0"',
            },
            body=MODEL[: 512 * KIB],
            cut=300 * KIB,
        ),
    ],
    ids=["500", "503", "429", "reset", "short", "reset mid-body"],
)
def test_what_passes_is_tried_again(web: FakeWeb, reply: Reply) -> None:
    stamp = web.reply("/models/a.gguf", "bytes=0-1").headers["etag"]
    if "content-range" in reply.headers:
        reply.headers["etag"] = stamp
        reply.headers.setdefault("content-length", str(512 * KIB))
    web.fault = first(reply)
    assert read_gguf(source(web, QUICK)).files[0].size_bytes == len(MODEL)
    starts = [int((asked.range or "").removeprefix("bytes=").split("-")[0]) for asked in web.asked]
    assert starts[0] == 0
    assert starts == sorted(starts)  # On from where it broke off.


def test_a_shorter_range_than_asked_for_is_taken_and_gone_on_with(web: FakeWeb) -> None:
    def halved(number: int, usual: Reply) -> Reply:
        del number
        start = int(usual.headers["content-range"].removeprefix("bytes ").split("-")[0])
        body = usual.body[: 200 * KIB]
        span = f"bytes {start}-{start + len(body) - 1}/{len(MODEL)}"
        return dataclasses.replace(
            usual, body=body, headers={**usual.headers, "content-range": span}
        )

    web.fault = halved
    assert read_gguf(source(web)).files[0].size_bytes == len(MODEL)
    starts = [int((asked.range or "").removeprefix("bytes=").split("-")[0]) for asked in web.asked]
    assert starts == [200 * KIB * step for step in range(len(starts))]
    assert len(starts) >= 5


# What is not


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(status=404), "the server has no such file (status 404)"),
        (
            Reply(status=403),
            "the server doesn't allow it (status 403): a login or a signature is missing, or old",
        ),
        (Reply(status=418), "the server refuses (status 418)"),
        (Reply(status=416), "the server refuses (status 416)"),
        (Reply(body=b"x"), "the answer doesn't say which range it is"),
        (
            Reply(headers={"content-range": "bytes 8-15/99"}, body=bytes(8)),
            "asked for bytes 0-524287, the answer has 8-15",
        ),
        (
            Reply(headers={"content-range": "bytes 0-99/50"}, body=bytes(100)),
            "the answer has bytes 0-99 of 50, which can't be",
        ),
        (
            Reply(headers={"content-range": "bytes 0-7/99"}, body=b"GGUF" + bytes(40)),
            "the answer is longer than it says",
        ),
        (
            Reply(status=200, headers={"content-encoding": "gzip"}, body=b"x"),
            "the server sends it compressed",
        ),
        (
            Reply(status=200, headers={"content-length": ""}, body=b""),
            "the server doesn't say how long it is",
        ),
        (
            Reply(status=302, headers={"location": "/models/a.gguf"}),
            "it redirects more than 5 times",
        ),
        (Reply(status=302, headers={"location": "ftp://x/y"}), "it redirects to no https address"),
        (Reply(status=302), "it redirects to no https address"),
        *(
            (Reply(status=302, headers={"location": place}), "it redirects to no https address")
            for place in ("file:///etc/passwd", "//[", "http://x:99999/", "data:,GGUF")
        ),
    ],
)
def test_an_answer_that_is_none(web: FakeWeb, reply: Reply, says: str) -> None:
    said = failing(web, always(reply))
    assert said == f"can't read http://host/models/a.gguf: {says}"


def test_a_server_that_keeps_failing_is_left_after_a_few_tries(web: FakeWeb) -> None:
    patient = QUICK._replace(remote_seconds=5.0, remote_tries=3)
    said = failing(web, always(Reply(status=503)), patient)
    assert said == "can't read http://host/models/a.gguf: the server fails (status 503)"
    assert len(web.asked) == 3


def test_a_pause_that_is_too_long_is_not_waited_for(web: FakeWeb) -> None:
    busy = Reply(status=429, headers={"retry-after": "3600"})
    start = time.monotonic()
    said = failing(web, always(busy))
    assert said == (
        "can't read http://host/models/a.gguf: the server is asked too often (status 429);"
        " it wants a pause of 3600 s"
    )
    assert (len(web.asked), time.monotonic() - start < 30) == (1, True)


def test_a_pause_that_is_asked_for_is_made(web: FakeWeb) -> None:
    web.fault = first(Reply(status=429, headers={"retry-after": "1"}))
    start = time.monotonic()
    read_gguf(source(web, QUICK._replace(remote_seconds=5.0)))
    assert time.monotonic() - start >= 1


def test_a_connection_that_always_breaks_at_the_same_place(web: FakeWeb) -> None:
    def cut(number: int, usual: Reply) -> Reply:
        del number
        start = int(usual.headers["content-range"].removeprefix("bytes ").split("-")[0])
        return dataclasses.replace(usual, cut=max(100 * KIB - start, 0))

    said = failing(web, cut, QUICK._replace(remote_seconds=5.0, remote_tries=3))
    assert said.startswith("can't read http://host/models/a.gguf: ")
    assert [asked.sent for asked in web.asked] == [100 * KIB, 0, 0]


def test_a_byte_now_and_then_has_an_end(web: FakeWeb) -> None:
    start = time.monotonic()
    said = failing(web, every(drip_seconds=0.1))
    assert time.monotonic() - start < 20
    assert "which is too slow" in said


def test_silence_has_an_end(web: FakeWeb) -> None:
    def wait(number: int, usual: Reply) -> Reply:
        del number
        web.stopped.wait(5)
        return usual

    start = time.monotonic()
    assert "no answer in time" in failing(web, wait)
    assert time.monotonic() - start < 4.9


def test_a_server_that_is_dead_is_not_waited_for_once_per_file(web: FakeWeb) -> None:
    def wait(number: int, usual: Reply) -> Reply:
        del number
        web.stopped.wait(5)
        return usual

    tree = WebTree(
        f"{web.url}/models/a.gguf",
        limits=QUICK._replace(remote_usual_seconds=0.2, remote_idle_seconds=0.6),
    )
    read_gguf(tree.open("a.gguf"))
    assert tree.traffic.idle == 0
    web.fault = wait
    with pytest.raises(SourceError, match="no answer in time"):
        tree.open("b.gguf").read(0, 4)
    assert 0.6 < tree.traffic.take().idle < 3
    asked = len(web.asked)
    with pytest.raises(SourceError, match=r"waited for in vain for . s: it isn't asked again"):
        tree.open("c.gguf").read(0, 4)
    assert len(web.asked) == asked


def test_nobody_there(web: FakeWeb) -> None:
    del web
    tree = WebTree("http://127.0.0.1:9/a.gguf", limits=QUICK)
    with pytest.raises(SourceError) as caught:
        tree.open(tree.name).read(0, 4)
    assert caught.value.message == "can't read http://127.0.0.1:9/a.gguf: Connection refused"


@pytest.mark.parametrize("changed", ["etag", "size", "whole"])
def test_a_file_that_changes_between_two_requests(web: FakeWeb, changed: str) -> None:
    def change(number: int, usual: Reply) -> Reply:
        if not number:
            return usual
        if changed == "whole":
            return Reply(status=200, body=MODEL)
        headers = dict(usual.headers)
        if changed == "etag":
            headers["etag"] = '"other"'
        else:
            headers["content-range"] = headers["content-range"].replace(
                f"/{len(MODEL)}", "/99999999"
            )
        return dataclasses.replace(usual, headers=headers)

    said = failing(web, change)
    assert said in (
        "can't read http://host/models/a.gguf: it was changed while it was read",
        "can't read http://host/models/a.gguf: the server can't go on from byte 524288",
    )
    assert len(web.asked) == 2


def test_a_whole_file_that_breaks_off_can_not_be_gone_on_with(web: FakeWeb) -> None:
    web.ranges = False
    said = failing(web, every(cut=100 * KIB))
    assert said == (
        "can't read http://host/models/a.gguf: the connection ended after 102400 bytes, and the"
        " server can't go on from there"
    )
    assert len(web.asked) == 1


def test_another_size_than_was_told(web: FakeWeb) -> None:
    url = f"{web.url}/models/a.gguf"
    told = Streamed(Address(url=url, shown="a", size=99, told_by="the Hub"), name="a.gguf")
    with pytest.raises(SourceError) as caught:
        told.read(0, 8)
    assert caught.value.message == f"can't read a: it has {len(MODEL)} bytes, the Hub said 99"


def test_too_many_requests_for_one_file(web: FakeWeb) -> None:
    many = LIMITS._replace(remote_window_bytes=KIB, remote_requests=5)
    with pytest.raises(LimitError, match="more than 5 requests are not spent on http"):
        read_gguf(source(web, many))
    assert len(web.asked) == 5


# What is secret


def test_credentials_stay_with_their_host_and_out_of_messages(web: FakeWeb) -> None:
    with FakeWeb(files={"/b.gguf": MODEL}) as elsewhere:
        moved = Reply(status=302, headers={"location": f"{elsewhere.url}/b.gguf?sign=secret"})
        web.fault = always(moved)
        url = web.url.replace("http://", "http://user:secret@")
        address = Address(url=f"{url}/a.gguf", shown="a", authorization=None)
        assert Streamed(address, name="a.gguf").read(0, 4) == b"GGUF"
        bearer = Address(url=f"{web.url}/a.gguf", shown="a", authorization="Bearer secret")
        assert Streamed(bearer, name="a.gguf").read(0, 4) == b"GGUF"
        assert "secret" not in repr(bearer)
        assert [asked.authorization for asked in web.asked] == [
            "Basic dXNlcjpzZWNyZXQ=",
            "Bearer secret",
        ]
        assert [asked.authorization for asked in elsewhere.asked] == [None, None]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host:8/a/b.gguf?x=secret#y", "https://host:8/a/b.gguf?..."),
        ("http://host/a.gguf", "http://host/a.gguf"),
        ("https://[::1/a", "an address that is none"),
        ("foo", "foo"),
        ("foo:8080/x?secret", "foo:8080/x?..."),
        ("user:secret@foo", "foo"),
    ],
)
def test_addresses_are_shown_without_what_is_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize("url", ["http://", "http://host:x/a", "https://[::1/a", "http://h/a\nb"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(SourceError, match="no address"):
        WebTree(url)


def test_asked_is_what_was_asked(web: FakeWeb) -> None:
    assert source(web).read(0, 4) == b"GGUF"
    [asked] = web.asked
    assert asked == Asked(
        path="/models/a.gguf", range="bytes=0-16777215", authorization=None, sent=asked.sent
    )

"""``s3://`` against an object store on this machine, where s3fs is installed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from engine_subjects import KEYS, TENSORS
from gguf_audit.engine import audit_targets
from gguf_audit.limits import LIMITS
from gguf_audit.mandate import Mandate
from gguf_audit.testing import build_gguf
from hub_server import go_online

pytest.importorskip("s3fs", reason="the extra fsspec isn't installed")

#: As good as without an end, for whoever reads it whole.
ENDLESS = 1 << 30

MODEL = build_gguf(KEYS, TENSORS)
#: A header in front of 8 MiB of tensor data.
BIG = build_gguf({"general.architecture": "llama"}, [("a.weight", (1 << 21,), "F32")])


@dataclass
class Store:
    """Objects by bucket/key, and what was asked for."""

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    asked: list[tuple[str, str | None, int]] = field(
        default_factory=list[tuple[str, str | None, int]]
    )
    refuses: bool = False
    #: What is answered without an end: "object", "listing" or "refusal".
    endless: str = ""
    #: Bytes of that which went out.
    poured: int = 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    store: Store

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve(body=True)

    def do_HEAD(self) -> None:
        self._serve(body=False)

    def _serve(self, *, body: bool) -> None:
        store = cast("_Server", self.server).store
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        key = unquote(parts.path).strip("/")
        is_listing = "list-type" in query
        if body and store.endless == ("listing" if is_listing else "object"):
            self._pour(200)
        elif body and store.endless == "refusal":
            self._pour(400)
        elif store.refuses:
            self._send(403, b"<Error><Code>AccessDenied</Code></Error>", {}, body=body)
        elif is_listing:
            prefix = query.get("prefix", [""])[0]
            self._send(200, self._listing(store, key, prefix), {}, body=body)
        elif key not in store.objects:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", {}, body=body)
        else:
            self._object(store.objects[key], body=body)

    def _object(self, data: bytes, *, body: bool) -> None:
        asked = self.headers["range"]
        if asked is None:
            self._send(200, data, {}, body=body)
            return
        first, last = asked.removeprefix("bytes=").split("-")
        part = data[int(first) : int(last) + 1]
        span = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
        self._send(206, part, {"content-range": span}, body=body)

    def _pour(self, status: int) -> None:
        """Answer with bytes for as long as somebody takes them."""
        store = cast("_Server", self.server).store
        self.send_response(status)
        self.send_header("content-length", str(ENDLESS))
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(ENDLESS >> 16):
                self.wfile.write(bytes(1 << 16))
                store.poured += 1 << 16
        self.close_connection = True

    @staticmethod
    def _listing(store: Store, bucket: str, prefix: str) -> bytes:
        found = [
            f"<Contents><Key>{name.removeprefix(f'{bucket}/')}</Key><Size>{len(data)}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for name, data in sorted(store.objects.items())
            if name.startswith(f"{bucket}/{prefix}")
        ]
        count = f"<KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult><Name>{bucket}</Name>{count}{''.join(found)}</ListBucketResult>".encode()

    def _send(self, status: int, data: bytes, headers: dict[str, str], *, body: bool) -> None:
        store = cast("_Server", self.server).store
        store.asked.append((self.path, self.headers["range"], len(data) if body else 0))
        self.send_response(status)
        usual = {"content-length": str(len(data)), "etag": '"x"'}
        usual["last-modified"] = "Thu, 01 Jan 2026 00:00:00 GMT"
        for name, value in {**usual, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        del format, args


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.store = Store({"bucket/a/big.gguf": BIG, "bucket/a/m.gguf": MODEL, "bucket/x.txt": b""})
    go_online(monkeypatch, endpoint="http://127.0.0.1:9", home=str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server.store
    server.shutdown()
    server.server_close()


def test_one_object_by_ranges(store: Store) -> None:
    [subject] = audit_targets(["s3://bucket/a/big.gguf"], Mandate(rules={})).subjects
    assert (subject.target, subject.errors) == ("s3://bucket/a/big.gguf", ())
    # Of 8 MiB the window that its header fits in.
    assert [span for _, span, _ in store.asked if span] == ["bytes=0-1048575"]
    assert subject.source is not None
    assert (subject.source.origin, subject.source.bytes) == ("fsspec", 1 << 20)


def test_every_model_below_a_prefix(store: Store) -> None:
    subjects = audit_targets(["s3://bucket/a"], Mandate(rules={})).subjects
    assert [(each.target, each.errors) for each in subjects] == [
        ("s3://bucket/a/big.gguf", ()),
        ("s3://bucket/a/m.gguf", ()),
    ]
    assert sum(sent for _, span, sent in store.asked if span) == (1 << 20) + len(MODEL)


def test_an_object_that_is_not_there_or_not_ours(store: Store) -> None:
    [subject] = audit_targets(["s3://bucket/none.gguf"], Mandate(rules={})).subjects
    assert "s3://bucket/none.gguf" in subject.errors[0].message
    store.refuses = True
    [subject] = audit_targets(["s3://other/none.gguf"], Mandate(rules={})).subjects
    assert "it isn't allowed" in subject.errors[0].message
    assert "secret" not in subject.errors[0].message


@pytest.mark.parametrize(
    ("endless", "unread"),
    [
        ("object", ["s3://bucket/a/big.gguf", "s3://bucket/a/m.gguf"]),
        ("listing", ["s3://bucket/a"]),
        ("refusal", ["s3://bucket/a"]),
    ],
)
def test_a_store_that_answers_without_an_end_is_left(
    store: Store, endless: str, unread: list[str]
) -> None:
    store.endless = endless
    subjects = audit_targets(["s3://bucket/a"], Mandate(rules={})).subjects
    why = "its server sends more than it was asked for; it isn't asked again"
    assert [(each.target, [error.message for error in each.errors]) for each in subjects] == [
        (target, [f"can't read s3://bucket/a: {why}"]) for target in unread
    ]
    # Once, and not for every file; what the system holds on the way comes on top.
    assert store.poured <= LIMITS.fsspec_excess_bytes + (32 << 20)
    # Others are asked all the same.
    store.endless = ""
    [subject] = audit_targets(["s3://bucket/a/m.gguf"], Mandate(rules={})).subjects
    assert subject.errors == ()


def test_several_processes_ask_the_store_too(store: Store) -> None:
    del store
    report = audit_targets(["s3://bucket/a"], Mandate(rules={}), jobs=2)
    assert [(each.target, each.errors) for each in report.subjects] == [
        ("s3://bucket/a/big.gguf", ()),
        ("s3://bucket/a/m.gguf", ()),
    ]

"""A Hub and its CDN on this machine: two servers that count what they are asked for."""

from __future__ import annotations

import hashlib
import json
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants

MIB = 1 << 20
CONFIG: dict[str, object] = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_secretsecretsecret"  # noqa: S105 - of a server of our own


@dataclass(frozen=True, slots=True)
class Content:
    """A file: its first bytes, and as many zeros as make up its size."""

    head: bytes
    size: int

    def slice(self, start: int, end: int) -> bytes:
        head = self.head[start:end]
        return head + bytes(max(min(end, self.size) - start - len(head), 0))

    def pointer(self) -> dict[str, object]:
        """Return what git has instead of it."""
        # Of a file that is mostly zeros nobody needs the hash.
        sha256 = hashlib.sha256(self.head).hexdigest() if self.size == len(self.head) else "0" * 64
        return {"sha256": sha256, "size": self.size, "pointerSize": 135}


def content(data: bytes | str | dict[str, object]) -> Content:
    """Return a small file; a dictionary becomes JSON."""
    if isinstance(data, dict):
        data = json.dumps(data)
    raw = data.encode() if isinstance(data, str) else data
    return Content(raw, len(raw))


def safetensors(elements: int, *, names: int = 1) -> Content:
    """Return a file of ``names`` tensors, of which the first has that many bytes."""
    header: dict[str, object] = {}
    end = 0
    for number in range(names):
        size = elements if number == 0 else 1
        shape, offsets = [size], [end, end + size]
        header[f"model.layers.{number}.weight"] = {
            "dtype": "U8",
            "shape": shape,
            "data_offsets": offsets,
        }
        end += size
    raw = json.dumps(header).encode()
    return Content(struct.pack("<Q", len(raw)) + raw, 8 + len(raw) + end)


@dataclass(frozen=True, slots=True)
class Request:
    """What one request asked for, and the body that was sent for it."""

    host: str
    method: str
    path: str
    range: str | None
    authorization: str | None
    sent: int


Answer = tuple[int, dict[str, str], bytes]
NO_HEADERS: dict[str, str] = {}
Fault = Callable[["FakeHub", str, str], Answer | None]


@dataclass
class FakeHub:
    """One repository, served as huggingface.co serves it."""

    repo: str = "owner/model"
    commit: str = COMMIT
    files: dict[str, Content] = field(default_factory=dict[str, Content])
    #: Names that are redirected to the CDN, as large files are.
    large: tuple[str, ...] = (".safetensors", "tokenizer.json", ".gguf")
    token: str | None = None
    gated: bool = False
    #: Looks at each request first: (hub, host, path) -> an answer instead of the usual.
    fault: Fault | None = None
    sizes: bool = True
    requests: list[Request] = field(default_factory=list[Request])
    url: str = ""
    cdn: str = ""

    def count(self, host: str = "") -> tuple[int, int]:
        """Return how many requests there were, and how many bytes were sent."""
        found = [request for request in self.requests if request.host.startswith(host)]
        return len(found), sum(request.sent for request in found)

    def answer(self, host: str, path: str, headers: dict[str, str]) -> Answer:
        usual = self.fault(self, host, path) if self.fault else None
        if usual is not None:
            return usual
        if host == "cdn":
            return self._content(path.lstrip("/"), headers)
        if path.startswith("/api/models/"):
            return self._info(path)
        return self._resolve(path, headers)

    def _info(self, path: str) -> Answer:
        repo, found, revision = path.removeprefix("/api/models/").partition("/revision/")
        if not found or repo != self.repo:
            return 401, {"x-error-code": "RepoNotFound"}, b"Invalid username or password."
        if unquote(revision) not in ("main", "v1/x", self.commit):
            return 404, {"x-error-code": "RevisionNotFound"}, b"{}"
        siblings = [
            {
                "rfilename": name,
                **({"size": file.size} if self.sizes else {}),
                **({"lfs": file.pointer()} if name.endswith(self.large) else {}),
            }
            for name, file in self.files.items()
        ]
        body = {"id": self.repo, "sha": self.commit, "siblings": siblings, "gated": self.gated}
        return 200, {"content-type": "application/json"}, json.dumps(body).encode()

    def _resolve(self, path: str, headers: dict[str, str]) -> Answer:
        repo, _, rest = path.lstrip("/").partition("/resolve/")
        revision, _, name = rest.partition("/")
        if repo != self.repo or revision != self.commit:
            return 404, {"x-error-code": "RepoNotFound"}, b""
        if self.gated and headers.get("authorization") != f"Bearer {self.token}":
            return (
                (403 if headers.get("authorization") else 401),
                {"x-error-code": "GatedRepo"},
                b"",
            )
        if name not in self.files:
            return 404, {"x-error-code": "EntryNotFound", "x-repo-commit": self.commit}, b""
        if name.endswith(self.large):
            linked = {
                "location": f"{self.cdn}/{name}",
                "x-repo-commit": self.commit,
                "x-linked-size": str(self.files[name].size),
                "x-linked-etag": f'"{_etag(name)}"',
            }
            return 302, linked, b""
        status, found, body = self._content(name, headers)
        return status, {**found, "x-repo-commit": self.commit}, body

    def _content(self, name: str, headers: dict[str, str]) -> Answer:
        file = self.files[name]
        found = {"etag": f'"{_etag(name)}"', "accept-ranges": "bytes"}
        wanted = headers.get("range", "")
        if not wanted:
            return 200, found, file.slice(0, file.size)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or file.size) + 1, file.size)
        found["content-range"] = f"bytes {start}-{end - 1}/{file.size}"
        return 206, found, file.slice(start, end)


def _etag(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def hub_of(folder: Path) -> FakeHub:
    """Return a Hub that has the files of a folder, those of its sub-folders among them."""
    files = {
        str(path.relative_to(folder)): content(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }
    return FakeHub(files=files)


def go_online(monkeypatch: pytest.MonkeyPatch, *, endpoint: str, home: str) -> None:
    """Let huggingface_hub, and us, ask this endpoint and no other."""
    # Read when huggingface_hub is imported, which another test may have done offline.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("HF_HOME", home)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: FakeHub, host: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub
        self.host = host
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address  # Whoever asked has gone away: that is tested too.


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve(body=True)

    def do_HEAD(self) -> None:
        self._serve(body=False)

    def _serve(self, *, body: bool) -> None:
        server = cast("_Server", self.server)
        path = urlsplit(self.path).path
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, found, data = server.hub.answer(server.host, path, headers)
        length = found.get("content-length", str(len(data)))
        request = Request(
            server.host,
            self.command,
            path,
            headers.get("range"),
            headers.get("authorization"),
            len(data) if body else 0,
        )
        server.hub.requests.append(request)
        try:
            self.send_response(status)
            for name, value in {**found, "content-length": length}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        del format, args


class Served:
    """A Hub that answers while it is entered."""

    def __init__(self, hub: FakeHub) -> None:
        self.hub = hub
        self._servers = [_Server(hub, "hub"), _Server(hub, "cdn")]
        hub.url, hub.cdn = (server.url for server in self._servers)

    def __enter__(self) -> FakeHub:
        for server in self._servers:
            threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
            ).start()
        return self.hub

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


def hang(seconds: float) -> Fault:
    """Return a fault that keeps every request waiting."""

    def fault(hub: FakeHub, host: str, path: str) -> Answer | None:
        del hub, host, path
        time.sleep(seconds)
        return None

    return fault


def always(answer: Answer, *, host: str = "hub") -> Fault:
    """Return a fault that gives every request to one of the two servers this answer."""

    def fault(hub: FakeHub, asked: str, path: str) -> Answer | None:
        del hub, path
        return answer if asked == host else None

    return fault

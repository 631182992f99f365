"""A web server on this machine that misbehaves as it is told, and counts."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, cast

__all__ = ["Asked", "FakeWeb", "Reply"]

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, and how many bytes of a body went out for it."""

    path: str
    range: str | None
    authorization: str | None
    sent: int


@dataclass(slots=True, kw_only=True)
class Reply:
    """What is answered: a status, headers, a body, and how the body is cut."""

    status: int = 206
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    #: Break the connection after so many bytes of it, or before anything if negative.
    cut: int | None = None
    #: Send a byte, then wait so many seconds, and so on.
    drip_seconds: float = 0


@dataclass
class FakeWeb:
    """Files by path, served by ranges; ``fault`` may answer instead."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    ranges: bool = True
    #: (number of the request, what would be answered) -> what is answered.
    fault: Callable[[int, Reply], Reply] | None = None
    asked: list[Asked] = field(default_factory=list[Asked])
    url: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        server = _Server(self)
        self._server = server
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def reply(self, path: str, asked: str | None) -> Reply:
        content = self.files.get(path)
        if content is None:
            return Reply(status=404)
        headers = {"etag": f'"{hashlib.sha256(content).hexdigest()[:16]}"'}
        found = _RANGE.fullmatch(asked or "")
        if found is None or not self.ranges:
            return Reply(status=200, headers=headers, body=content)
        start, end = int(found[1]), min(int(found[2] or len(content)) + 1, len(content))
        if start >= len(content):
            return Reply(status=416, headers={"content-range": f"bytes */{len(content)}"})
        headers["content-range"] = f"bytes {start}-{end - 1}/{len(content)}"
        return Reply(headers=headers, body=content[start:end])


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, web: FakeWeb) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        # What is on its way when a reader leaves is part of what is counted.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        self.web = web

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address  # Whoever asked has gone away: that is tested too.


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        web = cast("_Server", self.server).web
        reply = web.reply(self.path.partition("?")[0], self.headers["range"])
        if web.fault is not None:
            reply = web.fault(len(web.asked), reply)
        number = len(web.asked)
        web.asked.append(self._asked(0))
        sent = 0
        if reply.cut is not None and reply.cut < 0:
            self.close_connection = True
            return
        try:
            self.send_response(reply.status)
            for name, value in {"content-length": str(len(reply.body)), **reply.headers}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            end = len(reply.body) if reply.cut is None else reply.cut
            step = 1 if reply.drip_seconds else 1 << 14
            while sent < end and not web.stopped.is_set():
                sent += self.wfile.write(reply.body[sent : min(sent + step, end)])
                if reply.drip_seconds:
                    web.stopped.wait(reply.drip_seconds)
        except OSError:
            self.close_connection = True
        if reply.cut is not None:
            self.close_connection = True
        web.asked[number] = self._asked(sent)

    def _asked(self, sent: int) -> Asked:
        return Asked(
            path=self.path,
            range=self.headers["range"],
            authorization=self.headers["authorization"],
            sent=sent,
        )

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        del format, args

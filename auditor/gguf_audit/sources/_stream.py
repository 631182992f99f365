"""The beginning of a file at an address, streamed as far as it is read.

One request is enough for a file whose header is shorter than a window, whether or not
the server knows ranges: it is closed where reading ends. A longer header, a shorter
answer or a broken connection is gone on with from the byte that is missing; nothing is
fetched twice.

Each answer flows in from a thread of its own, so that waiting has an end whatever the
server does: a name server that is silent, or a byte now and then.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from gguf_audit.errors import LimitError, SourceError
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources import _hub_http as http
from gguf_audit.sources._hub_http import Broken, Refusal
from gguf_audit.sources._networks import leads_inside
from gguf_audit.sources.addresses import origin_of, redirected
from gguf_audit.where import Where

__all__ = ["NEAR_BYTES", "Address", "Streamed", "Traffic"]

#: What begins so close behind what was fetched is reached by going on.
NEAR_BYTES = 256 << 10

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: What another try may get past; the same as for the Hub.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_FIRST_PAUSE_SECONDS = 0.2
#: Chunks of at most 64 KiB that are taken in before anybody asks for them.
_AHEAD = 4
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.ASCII)
_NO_BYTES = re.compile(r"bytes \*/0", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)


class Traffic(Struct):
    """What reading the files of one place has cost so far.

    Requests, redirects among them, and bytes of bodies. A process that is forked goes on
    counting by itself.
    """

    requests: int = 0
    bytes: int = 0
    #: Seconds that were waited for longer than is usual, over all files.
    idle: float = 0.0

    def given_up(self, limits: Limits) -> str | None:
        """Return why nothing is asked for any more, ``None`` as long as something is."""
        if self.idle < limits.remote_idle_seconds:
            return None
        return f"its server was waited for in vain for {self.idle:.0f} s: it isn't asked again"

    def take(self) -> Traffic:
        """Return what was counted, and count from nothing again; patience doesn't come back."""
        taken = Traffic(self.requests, self.bytes, self.idle)
        self.requests = self.bytes = 0
        return taken


class Address(Struct, frozen=True, kw_only=True):
    """Where a file is, and how to speak of it."""

    url: str
    #: What messages call it: nothing in it is secret.
    shown: str
    #: Sent to the host of ``url`` and to no other.
    authorization: str | None = None
    #: Its host is anybody's: from the internet it may not send us to where we alone get to.
    foreign: bool = False
    #: Bytes in all, where somebody has told.
    size: int | None = None
    #: Who has told that.
    told_by: str = "the server"
    #: What a refusal means; ``None`` where it means no more than its status.
    explain: Callable[[Refusal], str | None] | None = None

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


class Streamed:
    """The beginning of a file, streamed as far as it is read and never twice."""

    __slots__ = (
        "_address",
        "_answer_end",
        "_fetched",
        "_flow",
        "_idle",
        "_limits",
        "_requests",
        "_size",
        "_stamp",
        "_traffic",
        "_waited",
        "_whole",
        "name",
    )

    def __init__(
        self,
        address: Address,
        *,
        name: str,
        traffic: Traffic | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        """Take an address; nothing is asked before something is read."""
        self._address = address
        self._traffic = traffic or Traffic()
        self._limits = limits
        self._size = address.size
        self._fetched = bytearray()
        self._flow: _Flow | None = None
        #: Offset at which the answer that flows in ends.
        self._answer_end = 0
        #: It is the whole file, from a server that can't send a part.
        self._whole = False
        #: What tells one state of the file from another: its ETag or its date.
        self._stamp: str | None = None
        self._requests = 0
        self._waited = 0.0
        #: What of that was longer than is usual.
        self._idle = 0.0
        self.name = name

    @property
    def size(self) -> int:
        """Bytes in all, as was told before or as the first answer says."""
        if self._size is None:
            self._persist(lambda: self._flow or self._begin())
        assert self._size is not None  # noqa: S101 - the answer has told it
        return self._size

    def read(self, start: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``start``; an AuditError otherwise."""
        end = start + length
        if start < 0 or length < 0 or end > self.size:
            raise self._error(f"{length} bytes at {start} are not in {self._size} bytes")
        if start > len(self._fetched) + NEAR_BYTES and length <= self._limits.tail_sample_bytes:
            return self._apart(start, end)
        if end > self._limits.header_bytes:
            raise self._error("tensor data is never fetched")
        while len(self._fetched) < end:
            self._persist(self._take)
        return bytes(memoryview(self._fetched)[start:end])

    def close(self) -> None:
        """Let the server go; what was read stays, and reading on asks it again."""
        if self._flow is not None:
            self._traffic.bytes += self._flow.close()
            self._flow = None

    def _apart(self, start: int, end: int) -> bytes:
        """Return a few bytes that lie far behind the header: those after the last tensor."""
        self.close()
        found = bytearray()

        def fetch() -> None:
            found.clear()
            flow = self._open(start, end)
            while len(found) < end - start:
                chunk = self._next(flow)
                if not isinstance(chunk, bytes):
                    raise Broken(f"the connection ended after {len(found)} bytes")
                found.extend(chunk)

        self._persist(fetch)
        self.close()
        return bytes(found[: end - start])

    # One step, and what is done where it fails

    def _persist(self, step: Callable[[], object]) -> None:
        """Take a step, again where that may help and as long as there is time."""
        pause = _FIRST_PAUSE_SECONDS
        for tries_left in reversed(range(self._limits.remote_tries)):
            try:
                step()
            except Refusal as refusal:
                self.close()
                if refusal.status not in _PASSING:
                    raise self._refused(refusal) from None
                wait = pause if refusal.retry_seconds is None else refusal.retry_seconds
                error = self._refused(refusal)
            except Broken as broken:
                self.close()
                wait = pause
                error = self._error(broken.reason)
            except BaseException:
                self.close()
                raise
            else:
                return
            if not tries_left or wait >= self._seconds_left():
                raise error
            self._wait(wait)
            time.sleep(wait)
            pause *= 2

    def _take(self) -> None:
        """Append the next bytes to what is there."""
        flow = self._flow or self._begin()
        chunk = self._next(flow)
        if chunk is None:
            self.close()
            if len(self._fetched) < self._answer_end:
                raise Broken(f"the connection ended after {len(self._fetched)} bytes")
            return
        if not isinstance(chunk, bytes):
            raise Broken("it answers twice")
        self._fetched += chunk
        if len(self._fetched) > self._answer_end:
            raise self._error("the answer is longer than it says")

    def _next(self, flow: _Flow) -> _Head | bytes | None:
        left = self._seconds_left()
        begun = time.monotonic()
        try:
            return flow.next(min(left, self._limits.remote_patience_seconds))
        finally:
            self._wait(time.monotonic() - begun)

    def _wait(self, seconds: float) -> None:
        """Count what was waited for this file, and what of it was in vain for all of its place."""
        self._waited += seconds
        usual = self._limits.remote_usual_seconds
        usual += len(self._fetched) / self._limits.remote_bytes_per_second
        idle = max(0.0, self._waited - usual)
        self._traffic.idle += idle - self._idle
        self._idle = idle

    def _seconds_left(self) -> float:
        """Return how long the file may still take: the more has come, the longer."""
        allowed = self._limits.remote_seconds
        allowed += len(self._fetched) / self._limits.remote_bytes_per_second
        left = allowed - self._waited
        if left <= 0:
            came = (
                f"{len(self._fetched)} bytes of it came in {self._waited:.0f} s, which is too slow"
            )
            raise self._error(came if self._fetched else "no answer in time")
        return left

    # An answer

    def _begin(self) -> _Flow:
        """Ask for what is missing, a window at most."""
        start = len(self._fetched)
        end = start + self._limits.remote_window_bytes
        if self._size is not None:
            end = min(end, self._size)
        if self._whole:
            raise self._error(
                f"the connection ended after {start} bytes, and the server can't go on from there"
            )
        return self._open(start, end)

    def _open(self, start: int, end: int) -> _Flow:
        """Ask for a range and follow redirects."""
        if reason := self._traffic.given_up(self._limits):
            raise self._error(reason)
        url = self._address.url
        for _ in range(self._limits.hub_redirects + 1):
            flow = self._flow = self._ask(url, f"bytes={start}-{end - 1}")
            head = self._next(flow)
            if not isinstance(head, _Head):
                raise Broken("it doesn't answer")
            if head.status in _REDIRECTS:
                self.close()
                url = self._redirected(url, head.headers.get("location", ""))
                continue
            self._accept(head, start, end)
            return flow
        raise self._error(f"it redirects more than {self._limits.hub_redirects} times")

    def _ask(self, url: str, span: str) -> _Flow:
        self._requests += 1
        self._traffic.requests += 1
        if self._requests > self._limits.remote_requests:
            raise LimitError(
                f"more than {self._limits.remote_requests} requests are not spent on"
                f" {self._address.shown}",
                where=Where(file=self.name),
            )
        headers = {"user-agent": http.agent(), "accept-encoding": "identity", "range": span}
        authorization = self._address.authorization
        if authorization and origin_of(url) == origin_of(self._address.url):
            headers["authorization"] = authorization
        seconds = self._limits.remote_patience_seconds
        return _Flow(url, headers, seconds=seconds, check=lambda: self._check(url))

    def _check(self, url: str) -> None:
        """Raise SourceError where nobody is to be led; this may wait for a name server."""
        first = self._address.url
        if self._address.foreign and url != first and leads_inside(first, url):
            here, there = (origin_of(each) or ("", "nowhere", 0) for each in (first, url))
            raise self._error(
                f"{here[1]} redirects to {there[1]}, which is no host of the internet: name that"
                " address itself if it is meant"
            )

    def _redirected(self, url: str, location: str) -> str:
        target = redirected(url, location)
        if target is None:
            raise self._error("it redirects to no https address")
        return target

    def _accept(self, head: _Head, start: int, end: int) -> None:
        """Check that an answer is the one that was asked for."""
        if head.headers.get("content-encoding", "identity").lower() != "identity":
            raise self._error("the server sends it compressed")
        match head.status:
            case 206:
                first, last, total = self._range(head)
                if first != start or not start <= last < end:
                    raise self._error(
                        f"asked for bytes {start}-{end - 1}, the answer has {first}-{last}"
                    )
                self._answer_end = last + 1
            case 200 if start:
                raise self._error(f"the server can't go on from byte {start}")
            case 200:
                total = self._answer_end = self._length(head)
                self._whole = True
            case 416 if not start and _NO_BYTES.fullmatch(head.headers.get("content-range", "")):
                total = self._answer_end = 0
            case _:
                raise Refusal(head.status, head.headers)
        if self._size not in (None, total):
            raise self._error(
                f"it has {total} bytes, {self._address.told_by} said {self._size}"
                if self._stamp is None
                else "it was changed while it was read"
            )
        stamp = head.headers.get("etag") or head.headers.get("last-modified")
        if self._stamp is not None and stamp != self._stamp:
            raise self._error("it was changed while it was read")
        self._stamp = stamp
        self._size = total

    def _range(self, head: _Head) -> tuple[int, int, int]:
        found = _CONTENT_RANGE.fullmatch(head.headers.get("content-range", "").strip())
        if found is None:
            raise self._error("the answer doesn't say which range it is")
        first, last, total = (int(number) for number in found.groups())
        if last >= total:
            raise self._error(f"the answer has bytes {first}-{last} of {total}, which can't be")
        return first, last, total

    def _length(self, head: _Head) -> int:
        stated = head.headers.get("content-length", "")
        if _LENGTH.fullmatch(stated):
            return int(stated)
        if self._size is None:
            raise self._error("the server doesn't say how long it is")
        return self._size

    def _refused(self, refusal: Refusal) -> SourceError:
        explain = self._address.explain
        says = explain(refusal) if explain is not None else None
        return self._error(says or _meaning(refusal))

    def _error(self, reason: str) -> SourceError:
        return SourceError(
            f"can't read {self._address.shown}: {reason}", where=Where(file=self.name)
        )


def _meaning(refusal: Refusal) -> str:
    match refusal.status:
        case 401 | 403:
            return (
                f"the server doesn't allow it (status {refusal.status}): a login or a signature is"
                " missing, or old"
            )
        case 404 | 410:
            return f"the server has no such file (status {refusal.status})"
        case 429:
            after = refusal.retry_seconds
            wait = "" if after is None else f"; it wants a pause of {after} s"
            return f"the server is asked too often (status 429){wait}"
        case status if status >= 500:
            return f"the server fails (status {status})"
        case status:
            return f"the server refuses (status {status})"


class _Head(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]


class _Flow:
    """One answer, taken in by a thread that is left behind when its time is over."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        seconds: float,
        check: Callable[[], None],
    ) -> None:
        http.library()  # Imported here and not in the thread, whose time is the server's.
        self._items: queue.Queue[_Head | bytes | BaseException | None] = queue.Queue(_AHEAD)
        self._stopped = threading.Event()
        self._received = 0
        run = threading.Thread(
            target=self._run,
            args=(url, headers, seconds, check),
            name="gguf-audit-stream",
            daemon=True,
        )
        run.start()

    def next(self, seconds: float) -> _Head | bytes | None:
        """Return the head, then chunks, then ``None``; Broken where that takes too long."""
        try:
            item = self._items.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise Broken("no answer in time") from None
        if isinstance(item, BaseException):
            # Without its chain: errors of HTTP libraries quote headers, the token too.
            raise item from None
        return item

    def close(self) -> int:
        """End it, and return how many bytes of a body came."""
        self._stopped.set()
        try:
            while True:
                self._items.get_nowait()
        except queue.Empty:
            return self._received

    def _run(
        self, url: str, headers: Mapping[str, str], seconds: float, check: Callable[[], None]
    ) -> None:
        try:
            check()
            with http.opened(url, headers, seconds=seconds) as (status, received, chunks):
                if not self._put(_Head(status, received)) or status not in (200, 206):
                    return
                for chunk in chunks:
                    self._received += len(chunk)
                    if not self._put(chunk):
                        return
            self._put(None)
        except BaseException as error:  # raised in ``next``, where one waits
            self._put(error)

    def _put(self, item: _Head | bytes | BaseException | None) -> bool:
        """Hand something over; False where nobody wants more.

        ``close`` makes room after it has said so: whoever waits here goes on then.
        """
        if self._stopped.is_set():
            return False
        self._items.put(item)
        return not self._stopped.is_set()

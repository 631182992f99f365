"""Requests to the Hub: through huggingface_hub's own session, within deadlines.

huggingface_hub bounds single reads of a socket, not a request: a server that sends a
byte now and then, or a name server that doesn't answer, holds it up for ever. So each
request runs in a thread that is left behind when its time is over, and from then on
the Hub counts as unreachable.
"""

from __future__ import annotations

import importlib
import queue
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

import gguf_audit
from gguf_audit.errors import LimitError, SourceError
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources.addresses import origin_of, redirected, shown_url

__all__ = [
    "AGENT",
    "Answer",
    "Broken",
    "Connection",
    "HubUnavailableError",
    "Refusal",
    "agent",
    "chain_of",
    "failures",
    "library",
    "opened",
    "reason_of",
]

T = TypeVar("T")

#: Who asks, for huggingface_hub's user agent.
AGENT = {"library_name": "gguf-audit", "library_version": gguf_audit.__version__}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: What another try may get past (huggingface_hub, utils/_http.py, ``http_backoff``).
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
#: What parts of the names of exceptions mean, whichever library has them; the first counts.
_MEANINGS = (
    ("Timeout", "no answer in time"),
    ("LocalProtocol", "a token or an address can't be sent as it is"),
    ("InvalidHeader", "a token or an address can't be sent as it is"),
    ("UnicodeEncode", "a token or an address can't be sent as it is"),
    ("InvalidURL", "that is no address"),
    ("UnsupportedProtocol", "that is no address"),
    ("Protocol", "its answer breaks off, or isn't HTTP"),
    ("ChunkedEncoding", "its answer breaks off, or isn't HTTP"),
)
_FIRST_PAUSE_SECONDS = 0.2
_CHUNK_BYTES = 1 << 16
#: Held while figures of a connection change: a connection itself goes to other processes.
_COUNTING = threading.Lock()


class HubUnavailableError(SourceError):
    """The Hub doesn't answer, or doesn't let us have what it is asked for."""


class Answer(Struct, frozen=True, kw_only=True):
    """A whole answer: its status, its headers by lower-case name, its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    #: Commit that the Hub itself says it serves, redirected or not.
    commit: str | None
    #: Where it came from in the end.
    url: str


class Refusal(Exception):  # noqa: N818 - what the Hub says, not what went wrong with us
    """An answer without content: a status and the Hub's own word for it."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self.status = status
        #: ``GatedRepo``, ``RepoNotFound``, ``RevisionNotFound`` or ``EntryNotFound``.
        self.word = headers.get("x-error-code", "")
        after = headers.get("retry-after", "")
        self.retry_seconds = int(after) if after.isdecimal() and len(after) < 6 else None


class Broken(Exception):  # noqa: N818 - the connection is
    """No answer: no such host, no connection, or one that ended early."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Connection:
    """What is spent on the Hub: requests, bytes, seconds, and patience, once.

    ``endpoint`` is the only host that ever sees the token.
    """

    def __init__(self, endpoint: str, *, limits: Limits = LIMITS) -> None:
        self.endpoint = endpoint.rstrip("/")
        #: Requests and bytes so far.
        self.requests = 0
        self.bytes = 0
        self._limits = limits
        #: Seconds in which somebody waited, without those that go on.
        self._seconds = 0.0
        self._waiting = 0
        self._waits_since = 0.0
        self._lanes = 1
        #: When something last came from the Hub.
        self._heard = 0.0
        self._lost: str | None = None
        self._headers: dict[str, str] | None = None

    @property
    def shown(self) -> str:
        """The endpoint without a password that may stand in it."""
        return shown_url(self.endpoint)

    @property
    def token(self) -> str | None:
        """The token that huggingface_hub would use: ``HF_TOKEN``, or that of a login."""
        return self._all_headers().get("authorization", "").removeprefix("Bearer ") or None

    def renew(self) -> None:
        """Begin another reference: each may spend as much."""
        self.requests = self.bytes = 0
        self._seconds = 0.0

    @contextmanager
    def shared(self, lanes: int) -> Generator[None, None, None]:
        """Let so many threads ask at the same time: what comes in is shared by them."""
        self._lanes = lanes
        try:
            yield
        finally:
            self._lanes = 1

    def get(
        self,
        url: str,
        *,
        limit_bytes: int = 0,
        expected_bytes: int = 0,
        span: tuple[int, int] | None = None,
    ) -> Answer:
        """Get a URL, or of its content the bytes from the first to the second offset.

        A whole one has at most ``limit_bytes``, and the time that ``expected_bytes`` take.
        Raises Refusal for any status but 200, or 206 where a span was asked for;
        HubUnavailableError where there is no answer in time, or none of that length.
        """
        headers = {**self._all_headers(), "accept-encoding": "identity"}
        if span is not None:
            headers["range"] = f"bytes={span[0]}-{span[1] - 1}"
            limit_bytes = expected_bytes = span[1] - span[0]
        answer = self.ask(
            lambda seconds: self._follow(
                url, headers, limit_bytes=limit_bytes, size=expected_bytes, seconds=seconds
            ),
            size=expected_bytes,
        )
        self._received(len(answer.body))
        return answer

    def _received(self, size: int) -> None:
        """Count bytes that came in."""
        with _COUNTING:
            self.bytes += size

    def ask(self, work: Callable[[float], T], *, size: int) -> T:
        """Let ``work`` ask the Hub for ``size`` bytes, again where that may help.

        ``work`` is told how many seconds it has. Raises what it raises, and
        HubUnavailableError where that takes too long or the connection breaks twice.
        """
        alone = size / self._limits.hub_bytes_per_second
        allowed = self._limits.hub_patience_seconds + alone
        shared = alone * (self._lanes - 1)
        start = time.monotonic()
        self._begin_waiting(start)
        pause = _FIRST_PAUSE_SECONDS
        broke = False
        try:
            while True:
                left = allowed - (time.monotonic() - start)
                try:
                    return self._within(left, partial(work, left + shared), shared=shared)
                except Refusal as refusal:
                    if refusal.status not in _PASSING:
                        raise
                    wait = pause if refusal.retry_seconds is None else refusal.retry_seconds
                    why = _failing(refusal)
                except Broken as broken:
                    wait = pause
                    why = f"can't be reached: {broken.reason}"
                    if broke:
                        raise self.lose(why) from None
                    broke = True
                if time.monotonic() - start + wait >= allowed:
                    raise self.lose(why)
                time.sleep(wait)
                pause *= 2
        finally:
            self._end_waiting()

    def lose(self, why: str) -> HubUnavailableError:
        """Ask no more, and return the error that says why."""
        self._lost = self._lost or f"{self.shown} {why}"
        return HubUnavailableError(self._lost)

    def account(self, *, requests: int, size: int) -> None:
        """Count what is about to be spent; LimitError where it is too much."""
        with _COUNTING:
            self.requests += requests
            spent = (
                (self.requests, self._limits.hub_requests, "requests"),
                (self.bytes + size * self._lanes, self._limits.hub_bytes, "bytes"),
                (self._seconds, self._limits.hub_seconds, "seconds"),
            )
        for much, limit, unit in spent:
            if much > limit:
                raise LimitError(f"more than {limit} {unit} are not spent on {self.shown}")

    def _begin_waiting(self, now: float) -> None:
        with _COUNTING:
            if not self._waiting:
                self._waits_since = now
            self._waiting += 1

    def _end_waiting(self) -> None:
        """Add the time in which somebody waited: once, however many did."""
        with _COUNTING:
            now = time.monotonic()
            self._waiting -= 1
            self._seconds += now - self._waits_since
            self._waits_since = now

    def _within(self, seconds: float, work: Callable[[], T], *, shared: float) -> T:
        """Return what ``work`` does in some seconds.

        It has ``shared`` more where the Hub answers, be it others: they take their part of
        what comes in.
        """
        if self._lost is not None:
            raise HubUnavailableError(self._lost)
        box: queue.SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = queue.SimpleQueue()

        def run() -> None:
            try:
                box.put((work(), None))
            except BaseException as error:  # raised below, where one waits
                box.put((None, error))

        begun = time.monotonic()
        threading.Thread(target=run, name="gguf-audit-hub", daemon=True).start()
        try:
            value, error = box.get(timeout=max(seconds, 0))
        except queue.Empty:
            if self._heard < begun or not shared:
                raise self.lose("doesn't answer") from None
            try:
                value, error = box.get(timeout=shared)
            except queue.Empty:
                raise self.lose("doesn't answer") from None
        if error is not None:
            # Without its chain: errors of HTTP libraries quote headers, the token too.
            raise error from None
        return value  # type: ignore[return-value] # without an error there is a value

    def _all_headers(self) -> dict[str, str]:
        """Return user agent and authorization.

        Not by ``build_hf_headers``, which first asks the Hub which agents there are to
        be counted.
        """
        if self._headers is None:
            # Imported here and not in the thread, whose time is the Hub's.
            user_agent = agent()
            # A login by OIDC or OAuth may ask the Hub for a token: this too has its time.
            token = self.ask(lambda _: _token(), size=0)
            self._headers = {"user-agent": user_agent}
            if token is not None:
                self._headers["authorization"] = f"Bearer {token}"
        return self._headers

    def _follow(
        self, url: str, headers: Mapping[str, str], *, limit_bytes: int, size: int, seconds: float
    ) -> Answer:
        commit: str | None = None
        for _ in range(self._limits.hub_redirects + 1):
            self.account(requests=1, size=size)
            sent = dict(headers)
            at_home = origin_of(url) == origin_of(self.endpoint)
            if not at_home:
                sent.pop("authorization", None)
            with opened(url, sent, seconds=seconds) as (status, received, chunks):
                self._heard = time.monotonic()
                if at_home and "x-repo-commit" in received:
                    commit = received["x-repo-commit"]
                if status in _REDIRECTS:
                    url = self._next(url, received.get("location", ""))
                    continue
                if status != (206 if "range" in headers else 200):
                    # The body is never read: a whole file instead of its header, say.
                    raise Refusal(status, received)
                if received.get("content-encoding", "identity").lower() != "identity":
                    raise self.lose("sends compressed what it is asked for as it is")
                body = _read(self._listened(chunks), limit_bytes)
            if body is None:
                raise self.lose(f"answers with more than the {limit_bytes} bytes asked for")
            return Answer(status=status, headers=received, body=body, commit=commit, url=url)
        raise self.lose(f"redirects more than {self._limits.hub_redirects} times")

    def _listened(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._heard = time.monotonic()
            yield chunk

    def _next(self, url: str, location: str) -> str:
        target = redirected(url, location)
        if target is None:
            raise self.lose("redirects to no https address")
        return target


def agent() -> str:
    """Return who asks, as a header says it."""
    return f"{'/'.join(AGENT.values())}; hf_hub/{library().__version__}"


def _failing(refusal: Refusal) -> str:
    if refusal.status == 429:
        return "is asked too often (status 429); a token in HF_TOKEN raises its limit"
    return f"fails (status {refusal.status})"


def _token() -> str | None:
    hub = library()
    if hub.constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return None
    try:
        token: str | None = hub.get_token()
    except failures() as error:
        raise Broken(f"its token can't be had ({reason_of(error)})") from None
    return token


def library() -> Any:
    """Return huggingface_hub, imported when it is first needed: that takes 0.3 s.

    Untyped, because its session is a ``requests.Session`` before 1.0, a
    ``httpx.Client`` before 2.0 and a ``httpx2.Client`` since.
    """
    for module in ("constants", "errors", "utils"):
        importlib.import_module(f"huggingface_hub.{module}")
    return importlib.import_module("huggingface_hub")


@contextmanager
def opened(
    url: str, headers: Mapping[str, str], *, seconds: float
) -> Generator[tuple[int, dict[str, str], Iterator[bytes]], None, None]:
    """Open a URL without following its redirects; the body streams in."""
    session = library().utils.get_session()
    # Whoever waits has given up by then: this only ends what was left behind.
    timeout = seconds + 1
    try:
        if isinstance(session.stream, bool):  # requests has a flag of that name
            opened: Any = session.get(
                url, headers=headers, timeout=timeout, allow_redirects=False, stream=True
            )
        else:
            opened = session.stream(
                "GET", url, headers=headers, timeout=timeout, follow_redirects=False
            )
        with opened as answer:
            # As they come: a chunk that has to be full would hide that bytes only drip.
            chunks = (
                answer.iter_raw()
                if hasattr(answer, "iter_raw")
                else answer.raw.stream(_CHUNK_BYTES, decode_content=False)
            )
            received = {name.lower(): value for name, value in answer.headers.items()}
            yield answer.status_code, received, chunks
    except failures() as error:
        raise Broken(reason_of(error)) from None


def failures() -> tuple[type[Exception], ...]:
    """Return what huggingface_hub and the library below it raise.

    ``ValueError``: a token or an address that can't be written into a header.
    """
    hub = library()
    # Later releases have an exception for a login that fails, no kin to the others.
    common = OSError, ValueError, getattr(hub.errors, "OIDCError", OSError)
    for kind in type(hub.utils.get_session()).__mro__:
        package: Any = sys.modules.get(kind.__module__.partition(".")[0])
        if package is not None and package.__name__ in ("httpx", "httpx2"):
            return *common, package.HTTPError, package.InvalidURL
    # Those of requests are OSErrors; below it is urllib3, whose own are not.
    urllib3: Any = sys.modules.get("urllib3")
    return common if urllib3 is None else (*common, urllib3.exceptions.HTTPError)


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, what it was raised from, and so on."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def reason_of(error: BaseException) -> str:
    """Say why a connection failed, never in the library's words: they may quote headers."""
    chain = tuple(chain_of(error))
    for each in chain:
        if isinstance(each, OSError) and each.strerror:
            return str(each.strerror)
    names = " ".join(type(each).__name__ for each in chain)
    meant = (says for part, says in _MEANINGS if part in names)
    return next(meant, type(error).__name__)


def _read(chunks: Iterator[bytes], limit_bytes: int) -> bytes | None:
    """Return a body, ``None`` where it is longer than the limit."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit_bytes:
            return None
        parts.append(chunk)
    return b"".join(parts)

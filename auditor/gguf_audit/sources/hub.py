"""Repositories of the Hugging Face Hub, each read at one commit.

Metadata files are taken from huggingface_hub's cache when they are in it, and put there
when they were fetched. Of safetensors and GGUF files only the beginning is fetched: it
holds the header. Nothing else is, so no weight ever crosses the network.

huggingface_hub's own download isn't used: it writes as much as it is sent, to a place in
the cache that a header names, and takes the token to a host that another one names.

huggingface_hub is imported when the Hub is first asked: that takes 0.3 s.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import quote

from msgspec import Meta, Struct
from msgspec.json import Decoder

from gguf_audit.errors import AuditError, SourceError
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources._hub_cache import (
    COMMIT,
    Snapshot,
    cache_folder,
    find_snapshot,
    keep,
    keep_absent,
)
from gguf_audit.sources._hub_http import Answer, Connection, HubUnavailableError, Refusal
from gguf_audit.sources._names import contained
from gguf_audit.sources._stream import Address, Streamed, Traffic
from gguf_audit.sources.addresses import origin_of
from gguf_audit.sources.local import FileSource
from gguf_audit.sources.memory import MemorySource
from gguf_audit.where import Where

__all__ = [
    "Hub",
    "HubTree",
    "HubUnavailableError",
    "Snapshot",
    "cache_folder",
    "find_snapshot",
    "is_offline",
]

if TYPE_CHECKING:
    from concurrent.futures import Future

    from gguf_audit.sources import ByteSource

Read = TypeVar("Read")

_DEFAULT_ENDPOINT = "https://huggingface.co"
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
#: Of configurations, templates, vocabularies and the model card.
_METADATA = (".json", ".jinja", ".model", ".txt", "README.md")
_WEIGHTS = ".safetensors"
_GGUF = ".gguf"
_CONTENT_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


def is_offline(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether huggingface_hub is told not to use the network (constants.py)."""
    value = environment.get("HF_HUB_OFFLINE") or environment.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in _TRUE


class Hub:
    """The Hub of one audit: once it doesn't answer, it isn't asked again."""

    def __init__(
        self, endpoint: str = _DEFAULT_ENDPOINT, *, cache: Path, limits: Limits = LIMITS
    ) -> None:
        """Take its address and the folder of its cache; nothing is asked yet."""
        self.cache = cache
        self.limits = limits
        self.connection = Connection(endpoint, limits=limits)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Hub:
        """Return the Hub that ``HF_ENDPOINT`` and the variables of its cache mean."""
        endpoint = environment.get("HF_ENDPOINT") or _DEFAULT_ENDPOINT
        return cls(endpoint, cache=cache_folder(environment))

    @classmethod
    def for_targets(cls, environment: Mapping[str, str] = os.environ) -> Hub:
        """Return the same Hub with more patience: what is to be audited has no substitute."""
        limits = LIMITS._replace(hub_patience_seconds=LIMITS.remote_patience_seconds)
        found = cls.of_environment(environment)
        return cls(found.connection.endpoint, cache=found.cache, limits=limits)

    def pin(self, repo: str, revision: str | None = None) -> HubTree:
        """Return a repository at the commit that a revision, or ``main``, is now.

        Raises HubUnavailableError where the Hub doesn't answer in time, has no such
        repository or revision, or wants something to be done first.
        """
        connection = self.connection
        connection.renew()
        if origin_of(connection.endpoint) is None:
            raise connection.lose("in HF_ENDPOINT is no http or https address")
        path = f"{quote(repo)}/revision/{quote(revision or 'main', safe='')}"
        url = f"{connection.endpoint}/api/models/{path}?blobs=true"
        try:
            answer = connection.get(url, limit_bytes=self.limits.hub_listing_bytes)
        except Refusal as refusal:
            raise self.explained(refusal, repo, revision) from None
        listing = _listed(answer.body)
        if listing is None:
            raise connection.lose("doesn't answer as a Hub does")
        entries = {entry.rfilename: entry for entry in listing.siblings}
        traffic = Traffic(connection.requests, connection.bytes)
        return HubTree(self, repo, listing.sha, entries, traffic)

    def explained(self, refusal: Refusal, repo: str, revision: str | None) -> HubUnavailableError:
        """Return the error that says what the Hub's refusal means and what to do."""
        at = self.connection.shown
        has_token = self.connection.token is not None
        match refusal.status, refusal.word:
            case ((401 | 403), "GatedRepo"):
                token = (
                    "with the account that HF_TOKEN belongs to"
                    if has_token
                    else "and set HF_TOKEN to a token of that account"
                )
                says = f"{repo} is gated: accept its licence at {at}/{repo} {token}"
            case _, "RevisionNotFound":
                says = f"{repo} has no revision {(revision or 'main')!a} at {at}"
            case _, "EntryNotFound":
                says = f"{repo} lists a file at {at} that isn't there"
            case ((401 | 404), _):
                token = "HF_TOKEN may be wrong for it" if has_token else "no HF_TOKEN is set"
                says = f"{at} has no repository {repo}, or a private one: {token}"
            case 403, _:
                says = f"{at} doesn't allow access to {repo} (status 403)"
            case 200, _:
                says = f"{at} sends whole files for a range, so no header of {repo} can be read"
            case _:
                says = f"{at} refuses {repo} (status {refusal.status})"
        return HubUnavailableError(says)


class HubTree:
    """A repository of the Hub at one commit."""

    def __init__(
        self,
        hub: Hub,
        repo: str,
        commit: str,
        entries: Mapping[str, _Entry],
        traffic: Traffic,
    ) -> None:
        """Take what ``Hub.pin`` has found out."""
        self._hub = hub
        self.repo = repo
        self._entries = entries
        self.commit = commit
        #: What the listing and the headers of GGUF files have cost.
        self.traffic = traffic

    @property
    def identity(self) -> str:
        """The repository and its commit."""
        return f"{self.repo}@{self.commit}"

    def names(self, folder: str = "") -> Sequence[str]:
        """Return the names in it, or in a sub-folder of it, sorted."""
        return tuple(sorted(name for name in self._entries if name.rpartition("/")[0] == folder))

    def files(self) -> Sequence[str]:
        """Return the names of all files in it, sorted, those of sub-folders among them."""
        return tuple(sorted(self._entries))

    def size(self, name: str) -> int | None:
        """Return the bytes of a file as the Hub lists them."""
        return self._entries[name].size

    def sha256(self, name: str) -> str | None:
        """Return the sha256 of a large file as the Hub lists it; small ones have none."""
        pointer = self._entries[name].lfs
        sha256 = None if pointer is None else pointer.sha256
        return sha256 if sha256 is not None and _SHA256.fullmatch(sha256) else None

    def open(self, name: str) -> _Downloaded | _Ranged | Streamed | FileSource:
        """Open a metadata file or the header of another one; nothing is fetched yet."""
        if contained(name) not in self._entries:
            raise self._error(name, "no such file")
        size = self._entries[name].size
        if name.endswith(_WEIGHTS):
            return _Ranged(self, name, size)
        if name.endswith(_METADATA):
            return self._cached(name, size) or _Downloaded(self, name, size)
        if _GGUF in name.lower():
            return self._cached(name, size) or self._streamed(name)
        raise self._error(name, "only metadata is fetched from the Hub")

    def _cached(self, name: str, size: int | None) -> FileSource | None:
        """Return a file that was downloaded once; of another size it wasn't."""
        snapshot = find_snapshot(self.repo, self.commit, cache=self._hub.cache)
        if snapshot is None:
            return None
        try:
            file = snapshot.tree.open(name)
        except AuditError:
            return None
        return file if size in (None, file.size) else None

    def _streamed(self, name: str) -> Streamed:
        token = self._hub.connection.token
        address = Address(
            url=self._url(name),
            shown=f"{name} of {self.identity}",
            authorization=None if token is None else f"Bearer {token}",
            size=self._entries[name].size,
            told_by="the Hub",
            explain=self._explained,
        )
        return Streamed(address, name=name, traffic=self.traffic, limits=self._hub.limits)

    def _explained(self, refusal: Refusal) -> str | None:
        if refusal.word or refusal.status in (401, 403):
            return self._hub.explained(refusal, self.repo, self.commit).message
        return None

    def download(self, name: str, size: int | None) -> bytes:
        """Return a metadata file, and leave it in the Hub cache for the next time."""
        connection = self._hub.connection
        limits = self._hub.limits
        try:
            answer = connection.get(
                self._url(name),
                limit_bytes=limits.tokenizer_bytes if size is None else size,
                expected_bytes=limits.config_bytes if size is None else size,
            )
        except Refusal as refusal:
            raise self._hub.explained(refusal, self.repo, self.commit) from None
        self._check_commit(name, answer)
        found = len(answer.body)
        if size not in (None, found):
            raise self._error(name, f"it has {found} bytes, the Hub lists {size}")
        keep(answer.body, self.repo, self.commit, name, cache=self._hub.cache)
        return answer.body

    def remember(self, names: Iterable[str]) -> None:
        """Leave in the Hub cache which of these files there aren't, for who has no network."""
        absent = [name for name in names if name not in self._entries]
        keep_absent(absent, self.repo, self.commit, cache=self._hub.cache)

    def each(
        self, names: Sequence[str], read: Callable[[ByteSource], Read]
    ) -> Generator[Read, None, None]:
        """Yield what ``read`` makes of each file, in order; several are read at a time.

        What ``read`` raises for the first file that fails is raised where its turn is.
        """
        from concurrent.futures import ThreadPoolExecutor

        lanes = min(self._hub.limits.hub_lanes, len(names))
        if lanes < 2:
            yield from (self._made(read, name) for name in names)
            return
        ahead: deque[Future[Read]] = deque()
        pool = ThreadPoolExecutor(lanes, thread_name_prefix="gguf-audit-shards")
        with self._hub.connection.shared(lanes):
            try:
                for name in names:
                    if len(ahead) == lanes:
                        yield ahead.popleft().result()
                    ahead.append(pool.submit(self._made, read, name))
                while ahead:
                    yield ahead.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _made(self, read: Callable[[ByteSource], Read], name: str) -> Read:
        return read(self.open(name))

    def span(self, name: str, start: int, end: int, *, at: str | None = None) -> Answer:
        """Return the bytes of a file from ``start`` to ``end``, ``end`` not included.

        ``at`` is where an earlier part of it came from: asked first, without the Hub.
        """
        get = partial(self._hub.connection.get, span=(start, end))
        try:
            answer = None
            if at is not None:
                # Such an address is good for some time only.
                with suppress(Refusal):
                    answer = get(at)
            answer = answer or get(self._url(name))
        except Refusal as refusal:
            raise self._hub.explained(refusal, self.repo, self.commit) from None
        self._check_commit(name, answer)
        return answer

    def _check_commit(self, name: str, answer: Answer) -> None:
        if answer.commit not in (None, self.commit):
            raise self._error(name, f"the Hub sends it from commit {answer.commit:.40}")

    def _url(self, name: str) -> str:
        endpoint = self._hub.connection.endpoint
        return f"{endpoint}/{quote(self.repo)}/resolve/{self.commit}/{quote(name)}"

    def _error(self, name: str, reason: str) -> SourceError:
        return SourceError(
            f"can't read {name} of {self.identity}: {reason}", where=Where(file=name)
        )


class _Downloaded:
    """A small file, downloaded whole when it is first read: its size is known before."""

    __slots__ = ("_file", "_size", "_tree", "name")

    def __init__(self, tree: HubTree, name: str, size: int | None) -> None:
        self._tree = tree
        self._size = size
        self._file: MemorySource | None = None
        self.name = name

    @property
    def size(self) -> int:
        """Bytes in all, as the Hub lists them."""
        return self._whole().size if self._size is None else self._size

    def read(self, start: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``start``; an AuditError otherwise."""
        return self._whole().read(start, length)

    def close(self) -> None:
        """Do nothing: it was downloaded whole."""

    def _whole(self) -> MemorySource:
        if self._file is None:
            self._file = MemorySource(self.name, self._tree.download(self.name, self._size))
        return self._file


class _Ranged:
    """The beginning of a file, fetched as far as it is read and never twice."""

    __slots__ = ("_came_from", "_fetched", "_size", "_tree", "name")

    def __init__(self, tree: HubTree, name: str, size: int | None) -> None:
        self._tree = tree
        self._size = size
        self._fetched = b""
        self._came_from: str | None = None
        self.name = name

    @property
    def size(self) -> int:
        """Bytes in all, as the Hub lists them or its first answer says."""
        if self._size is None:
            self._fetch(1)
        assert self._size is not None  # noqa: S101 - the answer has told it
        return self._size

    def read(self, start: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``start``; an AuditError otherwise."""
        end = start + length
        if start < 0 or length < 0 or end > self.size:
            raise self._error(f"{length} bytes at {start} are not in {self.size} bytes")
        if end > LIMITS.safetensors_header_bytes + 8:
            raise self._error("weights are never fetched")
        if end > len(self._fetched):
            self._fetch(end)
        return self._fetched[start:end]

    def close(self) -> None:
        """Do nothing: every range was fetched whole."""

    def _fetch(self, end: int) -> None:
        """Fetch what is missing up to ``end``; at first a window that most headers fit in."""
        start = len(self._fetched)
        if not start:
            end = max(end, LIMITS.hub_window_bytes)
        if self._size is not None:
            end = min(end, self._size)
        answer = self._tree.span(self.name, start, end, at=self._came_from)
        found = _CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
        if found is None:
            raise self._error("the answer doesn't say which range it is")
        first, last, total = (int(number) for number in found.groups())
        if self._size not in (None, total):
            raise self._error(f"it has {total} bytes, the Hub lists {self._size}")
        if (first, last + 1) != (start, min(end, total)) or len(answer.body) != last + 1 - first:
            raise self._error(
                f"asked for bytes {start}-{end - 1}, the answer has {len(answer.body)} bytes"
                f" and calls them {first}-{last}"
            )
        self._size = total
        self._fetched += answer.body
        self._came_from = answer.url

    def _error(self, reason: str) -> SourceError:
        return SourceError(
            f"can't read {self.name} of {self._tree.identity}: {reason}",
            where=Where(file=self.name),
        )


class _Pointer(Struct, frozen=True):
    """What git has instead of a large file."""

    sha256: str | None = None


class _Entry(Struct, frozen=True):
    """One file as the Hub lists it (huggingface_hub, hf_api.py, ``RepoSibling``)."""

    rfilename: str
    size: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    lfs: _Pointer | None = None


class _Listing(Struct, frozen=True):
    """A repository at a commit; the rest of what the Hub says of it isn't even kept."""

    sha: str
    siblings: tuple[_Entry, ...]


_LISTING = Decoder(_Listing)


def _listed(body: bytes) -> _Listing | None:
    """Return the commit and the files, ``None`` where that isn't what was sent."""
    try:
        listing = _LISTING.decode(body)
    except (ValueError, RecursionError):
        return None
    return listing if COMMIT.fullmatch(listing.sha) else None

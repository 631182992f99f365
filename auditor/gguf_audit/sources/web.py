"""Files at any http or https address, read by ranges as far as their headers go."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from gguf_audit.errors import SourceError, UnlistedError
from gguf_audit.limits import LIMITS, Limits
from gguf_audit.sources._names import contained
from gguf_audit.sources._stream import Address, Streamed, Traffic
from gguf_audit.sources.addresses import origin_of, shown_url

__all__ = ["WebTree"]


class WebTree:
    """What stands beside a file on a web server: nobody lists it, but it can be asked for."""

    def __init__(self, url: str, *, limits: Limits = LIMITS) -> None:
        """Take the address of a file; nothing is asked yet. SourceError where it is none."""
        origin = origin_of(url)
        if origin is None or not url.isprintable() or " " in url:
            raise SourceError(f"{shown_url(url)}: that is no address")
        self._parts = urlsplit(url)
        self._folder, _, name = self._parts.path.rpartition("/")
        #: Name of the file whose address was given.
        self.name = unquote(name) or origin[1]
        self.traffic = Traffic()
        self._limits = limits

    @property
    def identity(self) -> str:
        """The address as it may be shown."""
        return shown_url(urlunsplit(self._parts))

    def names(self, folder: str = "") -> Sequence[str]:
        """Raise UnlistedError: a web server tells of one file at a time."""
        raise UnlistedError(f"{self.identity} is no folder that can be listed {folder}".rstrip())

    def open(self, name: str) -> Streamed:
        """Open the file itself or one beside it; nothing is asked yet."""
        parts = self._parts
        if name != self.name:
            parts = parts._replace(path=f"{self._folder}/{quote(contained(name))}")
        # What stands behind # is the reader's own.
        url = urlunsplit(parts._replace(fragment=""))
        address = Address(url=url, shown=shown_url(url), foreign=True)
        return Streamed(address, name=name, traffic=self.traffic, limits=self._limits)

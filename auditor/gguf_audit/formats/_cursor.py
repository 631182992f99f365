"""A bounded walk over a source, front to back, that trusts no length it reads.

Every step compares what it wants with what is left before it reads, allocates or
loops. At most one window is in memory besides the value asked for, and every byte
that is passed is hashed on the way: the digest of a header costs no second read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from struct import Struct
from typing import NoReturn

from gguf_audit.errors import LimitError, MalformedError
from gguf_audit.formats._strings import LENGTH_BYTES, ByteOrder, Strings, whole_strings
from gguf_audit.limits import LIMITS
from gguf_audit.sources import ByteSource
from gguf_audit.where import Where

__all__ = ["WINDOW_BYTES", "Cursor"]

#: Bytes fetched at once. A header of 6 MB then takes 64 reads; from 128 KiB on malloc asks the
#: system for each window anew, which takes as long as what is done with it.
WINDOW_BYTES = 96 << 10
#: Bytes that are taken apart into strings at once: what is made of them stays in the cache.
STRINGS_BYTES = 1 << 15


class Cursor:
    """A bounded walk over a source, front to back.

    ``end`` is where the source (or the part to be walked) ends: passing it is a
    MalformedError. ``limit`` is as far as we are willing to go: passing it is a
    LimitError. ``key`` and ``tensor`` are put into the place of an error.
    """

    __slots__ = (
        "_at",
        "_base",
        "_buffer",
        "_digest",
        "_end",
        "_limit",
        "_source",
        "_u32",
        "_u64",
        "key",
        "order",
        "tensor",
    )

    def __init__(
        self,
        source: ByteSource,
        *,
        start: int = 0,
        end: int | None = None,
        limit: int | None = None,
        order: ByteOrder = "little",
    ) -> None:
        self._source = source
        self._end = source.size if end is None else end
        self._limit = self._end if limit is None else min(limit, self._end)
        self._base = start
        self._buffer = b""
        self._at = 0
        self._digest = hashlib.sha256()
        self.key: str | None = None
        self.tensor: str | None = None
        self.use(order)

    def use(self, order: ByteOrder) -> None:
        """Read numbers in this byte order from here on."""
        self.order: ByteOrder = order
        self._u32 = Struct("<I" if order == "little" else ">I")
        self._u64 = Struct("<Q" if order == "little" else ">Q")

    @property
    def position(self) -> int:
        """Offset of the next byte from the start of the source."""
        return self._base + self._at

    @property
    def remaining(self) -> int:
        """Bytes up to the end."""
        return self._end - self.position

    def sha256(self) -> str:
        """Return the digest of every byte passed so far, in hex."""
        self._forget_passed()
        return self._digest.hexdigest()

    def where(self, *, offset: int | None = None) -> Where:
        """Return the place of the next byte, or of ``offset``."""
        place = self.position if offset is None else offset
        return Where(file=self._source.name, offset=place, key=self.key, tensor=self.tensor)

    def malformed(self, message: str, *, offset: int | None = None) -> MalformedError:
        """Return the error for bytes that can't be what they claim to be."""
        return MalformedError(message, where=self.where(offset=offset))

    def over_limit(self, message: str, *, offset: int | None = None) -> LimitError:
        """Return the error for something that we aren't willing to read."""
        return LimitError(message, where=self.where(offset=offset))

    def u32(self, what: str) -> int:
        """Take an unsigned 32-bit number."""
        return self.number(self._u32, what)

    def u64(self, what: str) -> int:
        """Take an unsigned 64-bit number."""
        return self.number(self._u64, what)

    def number(self, form: Struct, what: str) -> int:
        """Take one number; ``form`` holds exactly one and its byte order."""
        if self._at + form.size > len(self._buffer):
            self._require(form.size, what)
        value: int = form.unpack_from(self._buffer, self._at)[0]
        self._at += form.size
        return value

    def take(self, length: int, what: str) -> bytes:
        """Take bytes; the caller has bounded their number by a limit of its own."""
        if self._at + length > len(self._buffer):
            self._require(length, what)
        start = self._at
        self._at += length
        return self._buffer[start : self._at]

    def skip(self, length: int, what: str) -> None:
        """Pass bytes without keeping them; they are read only to be hashed."""
        buffered = len(self._buffer) - self._at
        if length <= buffered:
            self._at += length
            return
        self._check(length, what)
        self._at = len(self._buffer)
        self._forget_passed()
        left = length - buffered
        while left:
            part = self._source.read(self._base, min(left, WINDOW_BYTES))
            self._digest.update(part)
            self._base += len(part)
            left -= len(part)

    def skip_strings(self, count: int, what: str) -> None:
        """Pass strings, each behind its 64-bit length."""
        self._check(count * LENGTH_BYTES, what)
        unpack = self._u64.unpack_from
        left = count
        while left:
            self._require(LENGTH_BYTES, f"{what}, string {count - left + 1} of {count}")
            buffer, at = self._buffer, self._at
            begins, last = at, len(buffer) - LENGTH_BYTES
            # The loop that passing 514,906 merges spends its time in.
            while left and at <= last:
                begins = at
                at += LENGTH_BYTES + unpack(buffer, at)[0]
                left -= 1
            if at <= len(buffer):
                self._at = at
                continue
            # The last string goes on behind the window, or claims to: back to where it
            # begins, because an error shall name that place.
            self._at = begins + LENGTH_BYTES
            self.skip(at - self._at, f"{what}, string {count - left} of {count}")

    def stored_strings(
        self, count: int, what: str, *, longest: int = LIMITS.string_bytes
    ) -> Iterator[Strings]:
        """Take strings as they are stored, some at a time, each behind its 64-bit length.

        LimitError where one has more than ``longest`` bytes.
        """
        self._check(count * LENGTH_BYTES, what)
        left = count
        while left:
            which = f"{what}, string {count - left + 1} of {count}"
            self._require(LENGTH_BYTES, which)
            data = self._buffer[self._at : self._at + STRINGS_BYTES]
            found = whole_strings(data, left, self.order)
            self._at += found.end
            if not found.texts:  # It goes on behind the window, or claims to.
                length = self.u64(which)
                if longest < length <= self.remaining:
                    raise self.over_limit(
                        f"{which} has {length} bytes, more than the {longest} that we read"
                    )
                found = Strings([self.take(length, which)], [0], LENGTH_BYTES + length)
            left -= len(found.texts)
            yield found

    def strings(self, count: int, what: str) -> list[str]:
        """Take strings; bytes that aren't UTF-8 become lone surrogates."""
        items: list[str] = []
        for some in self.stored_strings(count, what):
            items += [text.decode("utf-8", "surrogateescape") for text in some.texts]
        return items

    def _require(self, length: int, what: str) -> None:
        """Have the next ``length`` bytes in the window."""
        self._check(length, what)
        if self._at + length <= len(self._buffer):
            return
        rest = self._buffer[self._at :]
        self._forget_passed()
        wanted = max(length, WINDOW_BYTES) - len(rest)
        start = self._base + len(rest)
        self._buffer = rest + self._source.read(start, min(wanted, self._limit - start))

    def _forget_passed(self) -> None:
        self._digest.update(memoryview(self._buffer)[: self._at])
        self._base += self._at
        self._buffer = self._buffer[self._at :]
        self._at = 0

    def _check(self, length: int, what: str) -> None:
        position = self.position
        if position + length > self._end:
            self._cut(length, what)
        if position + length > self._limit:
            raise self.over_limit(
                f"the header goes on behind its first {self._limit} bytes, which is as far as we read"
            )

    def _cut(self, length: int, what: str) -> NoReturn:
        missing = length - self.remaining
        raise self.malformed(
            f"the file ends inside {what}: {length} bytes wanted at offset {self.position}, "
            f"{self.remaining} left, {missing} missing"
        )

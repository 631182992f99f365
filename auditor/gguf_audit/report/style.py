"""How text is set for its reader: width, colour, and what a terminal may be sent."""

from __future__ import annotations

import enum
import re
import textwrap

from msgspec import Struct

from gguf_audit.limits import LIMITS

__all__ = ["Detail", "Paint", "Style", "plural"]


#: What ``str.isprintable`` lets through and must not reach a reader raw: characters that
#: nobody sees (Default_Ignorable_Code_Point of DerivedCoreProperties.txt), and the marks of
#: a command to the machine that runs a build, which Azure Pipelines, TeamCity and old
#: GitHub runners obey in the middle of a line.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
    r"|(?<=#)#(?=\w*\[)"
)


class Detail(enum.IntEnum):
    """How much of a report is wanted."""

    VERDICT = 0
    NORMAL = 1
    EVERYTHING = 2


class Paint(enum.StrEnum):
    """What a colour stands for; the value is an SGR parameter of ECMA-48."""

    BAD = "1;31"
    DOUBTFUL = "1;33"
    GOOD = "1;32"
    NOTE = "36"
    FAINT = "2"
    STRONG = "1"


class Style(Struct, frozen=True, kw_only=True):
    """How text is set for its reader; the default suits a pipe."""

    detail: Detail = Detail.NORMAL
    color: bool = False
    #: Columns of a terminal; ``None`` leaves every line whole, for ``grep``.
    width: int | None = None
    #: False where the reader's encoding has only ASCII for certain.
    unicode: bool = True

    def paint(self, text: str, paint: Paint) -> str:
        """Colour text that is safe already."""
        return f"\x1b[{paint.value}m{text}\x1b[0m" if self.color and text else text

    def safe(self, text: str, *, limit: int | None = LIMITS.shown_characters) -> str:
        r"""Return text that came from a file in a form that a terminal may be sent.

        Whatever isn't printable is spelled out: control characters, line ends, the
        bidirectional and zero-width ones, halves of surrogate pairs; ``\xNN`` up to
        U+00FF and for bytes that are no UTF-8, ``\uNNNN`` or ``\UNNNNNNNN`` above. So is
        the second ``#`` of what a build system would take for a command: ``##[...``.
        """
        rest = 0 if limit is None else len(text) - limit
        if limit is not None and rest > 0:
            return f"{self.safe(text[:limit], limit=None)}... ({rest:,} more characters)"
        if not (text.isprintable() and (self.unicode or text.isascii())):
            text = "".join(map(self._spelled, text))
        return _UNSEEN.sub(_unseen, text)

    def field(self, label: str, text: str, *, wrap: bool = True) -> list[str]:
        """Set a label and its text, which hangs under itself where it is too long."""
        head = f"    {label:<9} "
        room = None if self.width is None else self.width - len(head)
        if not wrap or room is None or len(text) <= room or room < 20:
            lines = [text]
        else:
            lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        first = self.paint(head, Paint.FAINT) + lines[0]
        return [first, *(" " * len(head) + line for line in lines[1:])]

    def _spelled(self, character: str) -> str:
        if character.isprintable() and (self.unicode or character.isascii()):
            return character
        return _code(character)


def _unseen(found: re.Match[str]) -> str:
    return _code(found[0])


def _code(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def plural(count: int, noun: str) -> str:
    """Return ``1 rule``, ``2 rules``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

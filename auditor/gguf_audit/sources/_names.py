"""Names that a file gives for other files, and why some are refused."""

from __future__ import annotations

import re

from gguf_audit.errors import MalformedError

__all__ = ["contained"]

#: Longest file name that common file systems take, in bytes.
NAME_BYTES = 255

_DRIVE_OR_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[A-Za-z]:")


def contained(name: str) -> str:
    """Return ``name`` if it stays inside the folder that it is joined to.

    For names out of index files, which are as untrusted as any other content:
    plain relative names with ``/`` between their parts, nothing else. Raises
    MalformedError.
    """
    reason = _escapes(name)
    if reason is not None:
        raise MalformedError(f"the file name {name[:NAME_BYTES]!a} is refused: {reason}")
    return name


def _escapes(name: str) -> str | None:
    try:
        length = len(name.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return "it isn't text"
    if length > NAME_BYTES:
        return f"it is longer than {NAME_BYTES} bytes"
    if "\0" in name:
        return "it contains a NUL"
    if "\\" in name:
        return "it contains a backslash"
    if _DRIVE_OR_URL.match(name):
        return "it names a drive or a URL"
    if name.startswith("/"):
        return "it is absolute"
    parts = name.split("/")
    if ".." in parts:
        return "it leaves its folder"
    if "" in parts or "." in parts:
        return "it has an empty part"
    return None

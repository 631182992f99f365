"""What a file is that isn't a GGUF file: so that the error can be a kind one."""

from __future__ import annotations

import re

from gguf_audit.errors import AuditError, MalformedError, UnsupportedError
from gguf_audit.limits import LIMITS
from gguf_audit.where import Where

__all__ = ["FOREIGN_BYTES", "foreign", "known_kind"]

#: Enough for the whole of a Git LFS pointer, which is under 200 bytes.
FOREIGN_BYTES = 512

_LFS = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n"
    rb".*?oid sha256:(?P<oid>[0-9a-f]{64})\nsize (?P<size>[0-9]{1,20})\n",
    re.DOTALL,
)

#: First bytes -> what they begin, and what to do about it. The four legacy magics are
#: little-endian 32-bit numbers (llama.cpp before GGUF, llama_file_loader).
_KINDS: tuple[tuple[bytes, str], ...] = (
    (b"tjgg", "a ggjt file, from before GGUF: convert the original checkpoint again"),
    (b"fmgg", "a ggmf file, from before GGUF: convert the original checkpoint again"),
    (b"lmgg", "a ggml file, from before GGUF: convert the original checkpoint again"),
    (b"algg", "a ggla adapter, from before GGUF: convert the original adapter again"),
    (
        b"PK\x03\x04",
        "a zip archive, as PyTorch checkpoints and downloads are: unpack or convert it",
    ),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive: unpack it first"),
    (b"\x7fELF", "a program (ELF)"),
    (b"MZ", "a Windows program"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
)


#: Letters of what is no GGUF file that are told.
_SHOWN = 16
#: What may stand before a text: white space, and the bytes that mark UTF-8.
_BLANK = b"\xef\xbb\xbf \t\r\n"


def known_kind(head: bytes, size: int = 0) -> str | None:
    """Name what some bytes begin, ``a zip archive``; ``None`` for nothing that we know.

    ``size`` is that of the whole file, where that is known.
    """
    if head.startswith(b"GGUF"):
        return "another GGUF file"
    if _is_pickle(head):
        return "a Python pickle"
    for magic, kind in _KINDS:
        if head.startswith(magic):
            return re.split("[:,]", kind, maxsplit=1)[0]
    return "a safetensors file" if _is_safetensors(head, size) else None


def is_json_object(head: bytes) -> bool:
    """Tell whether some bytes may begin a JSON object."""
    return head.lstrip(_BLANK).startswith(b"{")


def foreign(head: bytes, size: int, name: str) -> AuditError:
    """Return the error for a file whose first bytes aren't those of GGUF.

    ``head`` is up to ``FOREIGN_BYTES`` bytes of a file of ``size`` bytes.
    """
    where = Where(file=name, offset=0)
    if not size:
        return MalformedError("the file is empty", where=where)
    pointer = _LFS.match(head)
    if pointer is not None:
        oid, stored = pointer["oid"].decode("ascii"), int(pointer["size"])
        return MalformedError(
            f"this is a Git LFS pointer to {stored} bytes with oid sha256:{oid}, not the file itself: "
            "run git lfs pull",
            where=where,
        )
    text = head.lstrip(_BLANK).lower()
    if text.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return MalformedError(
            "this is a web page, not a GGUF file: the download got an error or a login page",
            where=where,
        )
    for magic, kind in _KINDS:
        if head.startswith(magic):
            return UnsupportedError(f"this isn't a GGUF file but {kind}", where=where)
    if _is_pickle(head):
        return UnsupportedError(
            "this isn't a GGUF file but a Python pickle, which can run code when loaded",
            where=where,
        )
    if _is_safetensors(head, size):
        return UnsupportedError(
            "this isn't a GGUF file but a safetensors file: give its folder as the reference",
            where=where,
        )
    if _is_imatrix(head):
        return UnsupportedError(
            "this isn't a GGUF file but an importance matrix in the format from before GGUF:"
            " llama-imatrix --in-file OLD -o NEW.gguf converts it",
            where=where,
        )
    if head.startswith(b"FUGG"):
        return MalformedError("the magic is FUGG: GGUF with its bytes swapped", where=where)
    if text.startswith((b"{", b"[")):
        return MalformedError("this is JSON text, not a GGUF file", where=where)
    if b"GGUF".startswith(head):
        return MalformedError(
            f"the file ends inside the magic: 4 bytes wanted, {size} there", where=where
        )
    if not any(head):
        return MalformedError(
            "the file begins with zeros: a download that was reserved and never filled",
            where=where,
        )
    return MalformedError(f"the file begins with {_beginning(head)}, not with GGUF", where=where)


def _beginning(head: bytes) -> str:
    """Return how a file begins: its first letters, or bytes where they are none."""
    line = head[:_SHOWN].partition(b"\n")[0].rstrip()
    if line and line.isascii() and line.decode("ascii").isprintable():
        return f'"{line.decode("ascii")}"'
    return f"the bytes {head[:4].hex(' ')}"


def _is_imatrix(head: bytes) -> bool:
    """Tell whether these are a number of entries, a length, and the name of a weight.

    The format has no magic (tools/imatrix/imatrix.cpp, ``save_imatrix_legacy``).
    """
    entries, length = int.from_bytes(head[:4], "little"), int.from_bytes(head[4:8], "little")
    return (
        0 < entries <= LIMITS.tensors
        and 0 < length <= FOREIGN_BYTES - 8
        and head[8 : 8 + length].endswith(b".weight")
    )


def _is_pickle(head: bytes) -> bool:
    # PROTO opcode and a protocol that exists; protocol 0 and 1 have no mark.
    return len(head) > 2 and head[0] == 0x80 and 2 <= head[1] <= 5


def _is_safetensors(head: bytes, size: int) -> bool:
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= size - 8

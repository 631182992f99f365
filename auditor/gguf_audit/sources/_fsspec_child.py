"""Asks file systems of fsspec's, in a process of its own: what they answer has no bound.

An implementation reads an answer whole before anybody sees how long it is, be it a range, a
listing or a refusal. So this process counts what comes in, and ends where that is more than
was granted; and it may have so much memory and no more, for what unfolds after it came.

A request is a line of JSON: ``url``, what to ``ask`` of it, ``given`` to that, and the
``bytes`` that may come in meanwhile. The answer is four bytes of length, biggest first, so
many of JSON, and as many bytes of a file as ``bytes`` in that says.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from gguf_audit.sources._hub_http import chain_of

__all__ = ["LENGTH_BYTES", "TOO_MUCH", "outcome", "serve"]

LENGTH_BYTES = 4
#: Exit code where more comes in than was granted.
TOO_MUCH = 71

#: What may still come in.
_granted = [0]


def outcome(request: Mapping[str, Any]) -> tuple[str, Any]:
    """Return why a request can't be answered, "" where it can, and the answer."""
    try:
        fsspec: Any = importlib.import_module("fsspec.core")
    except ImportError:
        return "fsspec isn't installed: pip install 'gguf-audit[fsspec]'", None
    try:
        files, root = fsspec.url_to_fs(request["url"])
        return "", _QUESTIONS[request["ask"]](files, *(request["given"] or [root]))
    except _WrongLengthError as error:
        return str(error), None
    except Exception as error:  # whatever others raise
        return _reason(error), None


class _WrongLengthError(Exception):
    """A file system gives more or less than it was asked for."""


def _place(files: Any, root: str) -> tuple[str, bool]:
    """Return the path of an address, and whether that is a file."""
    # One that was asked before may remember what was there then.
    files.invalidate_cache()
    try:
        # Not ``isfile``, for which a server that doesn't answer has no file.
        return root, files.info(root)["type"] == "file"
    except FileNotFoundError:
        return root, False


def _find(files: Any, path: str) -> list[str]:
    """Return the paths of all files below one; in few requests where its server can do that."""
    kind = files.__class__
    if getattr(kind, "_find", kind.find).__module__ in ("fsspec.asyn", "fsspec.spec"):
        return _walk(files, path)
    return list(files.find(path))


def _walk(files: Any, path: str) -> list[str]:
    """Do what fsspec does where an implementation lists one folder at a time, with its errors.

    Its own ``walk`` leaves out what can't be listed, below the first folder whatever it is told.
    """
    found: list[str] = []
    waiting, known = [path], {path.rstrip("/")}
    while waiting:
        for each in files.ls(waiting.pop(), detail=True):
            name = each["name"].rstrip("/")
            if each["type"] != "directory":
                found.append(name)
            elif name not in known:
                known.add(name)
                waiting.append(name)
    return found


def _list(files: Any, path: str) -> list[str]:
    return [each["name"] for each in files.ls(path, detail=True) if each["type"] == "file"]


def _size(files: Any, path: str) -> int | None:
    size = files.info(path)["size"]
    return size if type(size) is int and size >= 0 else None


def _fetch(files: Any, path: str, start: int, end: int) -> bytes:
    found = bytes(files.cat_file(path, start=start, end=end))
    if len(found) != end - start:
        raise _WrongLengthError(f"asked for bytes {start}-{end - 1}, got {len(found)}")
    return found


_QUESTIONS: Mapping[str, Callable[..., Any]] = {
    "place": _place,
    "find": _find,
    "list": _list,
    "size": _size,
    "fetch": _fetch,
}


def _reason(error: BaseException) -> str:
    """Say what is wrong, not in the words of a library that may quote credentials."""
    match error:
        case FileNotFoundError():
            return "no such file"
        case PermissionError():
            return "it isn't allowed: are the credentials set that its fsspec implementation reads?"
        case ImportError():
            return (
                "fsspec lacks what reads this protocol; for s3:// pip install 'gguf-audit[fsspec]'"
            )
        case ValueError() if "Protocol not known" in str(error):
            return "fsspec doesn't know this protocol"
        case TimeoutError():
            return "no answer in time"
        case MemoryError():
            return "what it sends takes too much memory"
        case _:
            # Those of HTTP libraries have what the system says somewhere behind them.
            said = (each.strerror for each in chain_of(error) if isinstance(each, OSError))
            fails = f"its fsspec implementation fails ({type(error).__name__})"
            return next(filter(None, said), fails)


# The process


def serve(memory_bytes: int) -> None:
    """Answer until there are no more requests."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever else may print must not stand between our answers.
    os.dup2(2, 1)
    _bound(memory_bytes)
    _count(socket.socket, "recv")
    _count(socket.socket, "recv_into")
    _count(ssl.SSLSocket, "read")
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def work() -> None:
        try:
            while True:
                _respond(answers, json.loads(requests.get()))
        finally:
            os._exit(1)

    threading.Thread(target=work, daemon=True).start()
    # At once where whoever asks is gone, whatever is still waited for.
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)


def _respond(answers: BinaryIO, request: Mapping[str, Any]) -> None:
    _granted[0] = request["bytes"]
    reason, found = outcome(request)
    data, size = b"", None
    if isinstance(found, bytes):
        data, size, found = found, len(found), None
    answer = json.dumps({"reason": reason, "bytes": size, "found": found}).encode("ascii")
    if len(answer) > request["bytes"]:
        # It unfolded after it came: whoever asks has no limit on memory.
        os._exit(TOO_MUCH)
    answers.write(len(answer).to_bytes(LENGTH_BYTES, "big") + answer + data)
    answers.flush()


def _bound(memory_bytes: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    from gguf_audit.bounded import bound

    # What is written to, not what is reserved: threads and other runtimes reserve gigabytes.
    bound({resource.RLIMIT_DATA: memory_bytes, resource.RLIMIT_CORE: 0})


def _count(kind: type, name: str) -> None:
    """Let a way to receive count what comes in by it."""
    receive = getattr(kind, name)

    def counted(*given: Any, **named: Any) -> Any:
        found = receive(*given, **named)
        _granted[0] -= found if isinstance(found, int) else len(found)
        if _granted[0] < 0:
            # Not by an exception: somebody would catch it and ask again.
            os._exit(TOO_MUCH)
        return found

    setattr(kind, name, counted)

"""Runs one of our scripts in a process of its own, with limits and nothing of ours in it.

What a script works on is untrusted, and so is what it needs for that: C++ that ends its
process where an assertion fails, expressions that never end.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from msgspec import Struct

from gguf_audit import processes

__all__ = ["Bounds", "Talk", "answers_of", "talk"]

_BOUNDED = Path(__file__).parents[1] / "bounded.py"


class Bounds(Struct, frozen=True, kw_only=True):
    """What a child may take."""

    #: Of address space.
    memory_bytes: int
    #: Of the processor, and by the clock.
    seconds: int
    #: What it may say, and what it may complain of.
    output_bytes: int


class Talk(Struct, frozen=True, kw_only=True):
    """What a child said until it ended."""

    #: Its complete lines that are JSON objects.
    answers: tuple[Mapping[str, object], ...]
    complaints: str
    #: As ``subprocess`` has it, ``None`` where we ended it ourselves.
    code: int | None
    #: Why we ended it, "" where we didn't.
    reason: str = ""


def talk(
    script: Path,
    request: Mapping[str, object],
    *,
    name: str,
    bounds: Bounds,
    document: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> Talk:
    """Give a script one request in JSON on stdin, and return what it answers on stdout.

    The request is one line; a ``document`` follows it.
    ``name`` is what a reason calls it. The ``environment`` is all that it has: nothing of
    ours, tokens least of all. No package can be imported in it, unless the script itself
    says where one is.
    """
    line = json.dumps(request).encode() + b"\n"
    limits = {"memory_bytes": bounds.memory_bytes, "cpu_seconds": bounds.seconds}
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own files
        [sys.executable, "-I", "-S", str(_BOUNDED), str(script), json.dumps(limits)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={"LC_ALL": "C", **(environment or {})},
        start_new_session=True,
    )
    try:
        heard = _converse(process, (line, document), name, bounds)
    finally:
        processes.end(process)
    answers, complaints, reason = heard
    return Talk(
        answers=tuple(answers_of(answers)),
        complaints=complaints.decode("utf-8", "replace"),
        code=None if reason else process.returncode,
        reason=reason,
    )


def _converse(
    process: subprocess.Popen[bytes], parts: Iterable[bytes], name: str, bounds: Bounds
) -> tuple[bytes, bytes, str]:
    """Return stdout, stderr and why we stopped listening, "" where it ended by itself."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise AssertionError("the pipes were asked for")
    # A child reads all of it before it says anything; one that died leaves nobody to.
    try:
        for part in parts:
            stdin.write(part)
        stdin.close()
    except BrokenPipeError:
        pass
    heard = {stdout: bytearray(), stderr: bytearray()}
    deadline = time.monotonic() + bounds.seconds
    with selectors.DefaultSelector() as selector:
        for pipe in heard:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                reason = f"{name} took longer than {bounds.seconds} s"
                return bytes(heard[stdout]), bytes(heard[stderr]), reason
            for key, _ in selector.select(left):
                pipe = stdout if key.fileobj is stdout else stderr
                chunk = os.read(pipe.fileno(), 1 << 16)
                heard[pipe] += chunk
                if not chunk:
                    selector.unregister(pipe)
                if len(heard[pipe]) > bounds.output_bytes:
                    return b"", b"", f"{name} said over {bounds.output_bytes} bytes"
    try:
        process.wait(timeout=max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return bytes(heard[stdout]), bytes(heard[stderr]), f"{name} doesn't end"
    return bytes(heard[stdout]), bytes(heard[stderr]), ""


def answers_of(answers: bytes) -> list[Mapping[str, object]]:
    """Return the complete lines that are objects; a crash may cut the last one."""
    parsed: list[Mapping[str, object]] = []
    for line in answers.decode("utf-8", "replace").splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            break
        if isinstance(answer, dict):
            parsed.append(cast("dict[str, object]", answer))
    return parsed

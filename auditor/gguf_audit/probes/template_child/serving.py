"""Answers requests about templates on a pipe, within limits that nothing can raise.

Both ways a message is four bytes of length, biggest first, and so many bytes of JSON.
The first request sets the limits. Each other one has ``template``, ``shared`` and
``conversations``; it is answered by a message with what parsing tells, by one for each
conversation, and by one that says ``done``.
"""

from __future__ import annotations

import codecs
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from gguf_audit.bounded import bound
from gguf_audit.probes.template_child.provoking import provoked
from gguf_audit.probes.template_child.rendering import (
    Answer,
    compiled,
    environment,
    outcome_of,
    renderings,
)
from gguf_audit.probes.template_child.suspicion import Found, examine
from gguf_audit.probes.template_child.tree import Tree

__all__ = ["serve"]

_LENGTH_BYTES = 4
#: Of a message that goes into an error.
_MOST_WORDS = 500
#: Attributes that are told.
_MOST_REACHED = 5


def serve() -> None:
    """Answer until there are no more requests."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever else may print must not stand between our messages.
    os.dup2(2, 1)
    limits = _read(requests)
    if limits is None:
        return
    # jinja2 loads them when it first needs them, and by then no file can be opened.
    codecs.lookup("unicode-escape")
    for name in ("html", "jinja2.constants", "jinja2.debug", "textwrap"):
        importlib.import_module(name)
    # What was imported is no garbage; what templates make is.
    gc.freeze()
    gc.enable()
    bound(
        {
            resource.RLIMIT_AS: limits["memory_bytes"],
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,
            # stdin, stdout, stderr and the answers: no other file can be opened.
            resource.RLIMIT_NOFILE: 4,
            resource.RLIMIT_NPROC: 0,
        }
    )
    while (request := _read(requests)) is not None:
        _allow(limits["cpu_seconds"])
        for answer in _answers(request, most=limits["prompt_characters"]):
            _write(answers, answer)
    # No destructors: they have nothing to save.
    os._exit(0)


def _answers(request: dict[str, Any], *, most: int) -> Iterator[dict[str, Any]]:
    made = environment()
    try:
        tree = made.parse(request["template"])
    except Exception as error:
        kind, text = outcome_of(error)
        line = getattr(error, "lineno", None) or 0
        said = getattr(error, "message", None) or text
        yield {
            "fault": [kind, said[:_MOST_WORDS]],
            "line": line,
            **examine(None, request["template"]),
        }
        yield {"done": True}
        return
    seen = Tree(tree)
    found = examine(seen, request["template"])
    yield {"fault": None, "line": 0, **found}
    if any(kind == "unbounded" for kind, *_ in found["suspicions"]):
        # It would only end this process, and the next template would wait for a new one.
        for name in request["conversations"]:
            yield {"name": name, "kind": "exceeded", "text": "it has no bounds"}
        yield {"done": True}
        return
    conversations, shared = request["conversations"], request["shared"]
    outcomes: Iterable[tuple[str, Answer]]
    template = None
    try:
        template = compiled(made, tree)
    except Exception as error:
        outcomes = dict.fromkeys(conversations, outcome_of(error)).items()
    else:
        outcomes = renderings(template, conversations, shared=shared, most=most)
    for name, (kind, text) in outcomes:
        yield {"name": name, "kind": kind, "text": text if kind == "text" else text[:_MOST_WORDS]}
    late: list[Found] = []
    if template is not None:
        first = next(iter(conversations.values()))
        late += provoked(template, seen, first, clock=made.clock, shared=shared, most=most)
    late += (
        ("internals", 0, f"the attribute {name}, in a prompt", True)
        for name in sorted(set(made.reached))[:_MOST_REACHED]
    )
    yield {"late": late}
    yield {"done": True}


def _allow(seconds: int) -> None:
    """Grant so much CPU time from now on; the limit counts whole seconds, and can't be stopped."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = int(time.process_time()) + seconds + 1
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _read(pipe: BinaryIO) -> dict[str, Any] | None:
    head = pipe.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        return None
    message: dict[str, Any] = json.loads(pipe.read(int.from_bytes(head, "big")))
    return message


def _write(pipe: BinaryIO, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode("ascii")
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
    pipe.flush()

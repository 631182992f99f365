"""Has chat templates parsed and rendered by a limited child process.

A template is a program that whoever made the file wrote: parsing one can take minutes,
compiling one can fill the memory. So that is never done here. The child has no
environment, no files and no more than ``limits`` grants; there is one for a whole run,
and a new one after a template has ended it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, cast, get_args

from gguf_audit import processes
from gguf_audit.chat import (
    CONVERSATIONS,
    Analysis,
    Exceeded,
    Failed,
    Raised,
    Rendered,
    Rendering,
    Suspicion,
    SuspicionKind,
)
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent

__all__ = ["Analyst"]

_LENGTH_BYTES = 4
#: Templates that are kept with what became of them: 3 MiB each, if they want.
_REMEMBERED = 16
_ROOT = Path(__file__).parents[2]
#: What the child runs; the folders it may import from are its arguments.
_PROGRAM = (
    "import gc, sys; gc.disable(); sys.path += sys.argv[1:];"
    "from gguf_audit.probes.template_child.serving import serve; serve()"
)
_KINDS = frozenset(cast("tuple[str, ...]", get_args(SuspicionKind)))
_Message = Mapping[str, object]


class _LostError(Exception):
    """The child has ended or has been ended; its message says why, and whether by limit."""

    def __init__(self, reason: str, *, certain: bool = False) -> None:
        super().__init__(reason)
        self.outcome = Exceeded(reason, certain=certain)


class Analyst:
    """Says what becomes of templates; the child is started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        #: Who started the child: a process that was forked later has to start its own.
        self._owner = os.getpid()
        # Files of a folder mostly have the same ones, and so has their reference.
        self._ask_once = functools.lru_cache(maxsize=_REMEMBERED)(self._ask)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def analyse(self, template: str, *, bos: str, eos: str) -> Analysis | Absent:
        """Return what the child says of a template, with these texts for its tokens.

        Absent where this system has no child to ask.
        """
        if len(template) > LIMITS.template_characters:
            reason = f"it has {len(template)} characters, over {LIMITS.template_characters}"
            return Analysis(fault=Exceeded(reason), renderings={})
        folders = _folders()
        if isinstance(folders, Absent):
            return folders
        return self._ask_once(folders, template, bos, eos)

    def _ask(self, folders: tuple[str, ...], template: str, bos: str, eos: str) -> Analysis:
        found = Analysis(renderings={})
        renderings: dict[str, Rendering] = {}
        shared = {"bos_token": bos, "eos_token": eos}
        request = {"template": template, "shared": shared, "conversations": CONVERSATIONS}
        parsed = False
        late: tuple[Suspicion, ...] = ()
        try:
            for answer in self._talk(folders, request):
                if not parsed:
                    found, parsed = _parsed(answer), True
                elif "late" in answer:
                    late = _late(
                        answer, told={each.kind for each in found.suspicions if each.grave}
                    )
                else:
                    name, outcome = _rendered(answer)
                    renderings[name] = outcome
        except _LostError as error:
            self._end()
            if not parsed:
                return Analysis(fault=error.outcome, renderings={})
            missing = (name for name in CONVERSATIONS if name not in renderings)
            renderings.update(dict.fromkeys(missing, error.outcome))
        return Analysis(
            fault=found.fault,
            line=found.line,
            foreign_tags=found.foreign_tags,
            variables=found.variables,
            suspicions=(*found.suspicions, *late),
            renderings=renderings,
        )

    def _talk(self, folders: tuple[str, ...], request: object) -> Iterator[_Message]:
        """Yield the child's answers to a request; _LostError where it ends before its time."""
        if self._owner != os.getpid():
            self._process, self._owner = None, os.getpid()
        if self._process is None:
            self._start(folders)
        deadline = time.monotonic() + LIMITS.template_seconds
        self._send(request)
        # One about the template, one for each conversation, two that end it.
        for _ in range(len(CONVERSATIONS) + 3):
            answer = self._receive(deadline)
            if answer.get("done") is True:
                return
            yield answer
        raise _LostError("its process answers more than it was asked")

    # The child

    def _start(self, folders: tuple[str, ...]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
        self._send(
            {
                "memory_bytes": LIMITS.template_memory_bytes,
                "cpu_seconds": LIMITS.template_cpu_seconds,
                "prompt_characters": LIMITS.prompt_characters,
            }
        )

    def _send(self, message: object) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise _LostError("its process isn't there")
        data = json.dumps(message).encode("ascii")
        # Bounded by what a template may have; the child reads it whole before it works.
        try:
            process.stdin.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
            process.stdin.flush()
        except BrokenPipeError:
            raise self._lost() from None

    def _receive(self, deadline: float) -> _Message:
        size = int.from_bytes(self._take(_LENGTH_BYTES, deadline), "big")
        if size > LIMITS.template_answer_bytes:
            raise _LostError(f"its process answers {size} bytes")
        try:
            message = json.loads(self._take(size, deadline))
        except (ValueError, RecursionError):
            raise _LostError("its process gives no answer that we know") from None
        if not isinstance(message, dict):
            raise _LostError("its process gives no answer that we know")
        return cast("dict[str, object]", message)

    def _take(self, size: int, deadline: float) -> bytes:
        process = self._process
        if process is None or process.stdout is None:
            raise _LostError("its process isn't there")
        taken = bytearray()
        pipe = process.stdout.fileno()
        while len(taken) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise _LostError(f"it takes longer than {LIMITS.template_seconds:g} s")
            chunk = os.read(pipe, min(size - len(taken), 1 << 16))
            if not chunk:
                raise self._lost()
            taken += chunk
        return bytes(taken)

    def _lost(self) -> _LostError:
        """Say why a child that says nothing more has ended."""
        process = self._process
        if process is None:
            return _LostError("its process isn't there")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LIMITS.template_seconds)
        match process.returncode:
            case code if code in (-signal.SIGPROF, -signal.SIGXCPU):
                reason = f"it takes more than {LIMITS.template_cpu_seconds} s of CPU time"
                return _LostError(reason, certain=True)
            case int(code) if code < 0:
                return _LostError(f"it ends its process with {_signal(-code)}", certain=True)
            case code:
                return _LostError(f"its process ended early, exit code {code}")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            processes.end(process)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # Real-time signals have no names.
        return f"signal {number}"


def _folders() -> tuple[str, ...] | Absent:
    """Return the folders that the child imports from."""
    if sys.platform == "win32":
        return Absent("chat templates are only parsed where a process can be limited")
    found = [str(_ROOT)]
    for module in ("jinja2", "markupsafe"):
        # Finding a top-level package doesn't import it.
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            return Absent(f"chat templates can't be parsed: {module} isn't installed")
        folder = str(Path(spec.origin).parents[1])
        if folder not in found:
            found.append(folder)
    return tuple(found)


# Its answers: nobody knows what a template may have made of the child.


def _parsed(answer: _Message) -> Analysis:
    match answer:
        case {
            "fault": None | [str(), str()] as fault,
            "line": int(line),
            "foreign_tags": list(),
            "variables": list(),
            "suspicions": list(),
        }:
            tags, variables, suspicions = (
                cast("list[object]", answer[name])
                for name in ("foreign_tags", "variables", "suspicions")
            )
            return Analysis(
                fault=None if fault is None else _fault(fault[0], fault[1]),
                line=line,
                foreign_tags=tuple(map(str, tags)),
                variables=frozenset(map(str, variables)),
                suspicions=tuple(_suspicions(suspicions)),
                renderings={},
            )
        case _:
            raise _LostError("its process gives no answer that we know")


def _late(answer: _Message, *, told: Collection[str]) -> tuple[Suspicion, ...]:
    """Return what prompts tell, of kinds of which the template's tree tells nothing grave."""
    match answer:
        case {"late": list()}:
            late = _suspicions(cast("list[object]", answer["late"]))
            return tuple(each for each in late if each.kind not in told)
        case _:
            raise _LostError("its process gives no answer that we know")


def _fault(kind: str, text: str) -> Failed | Exceeded:
    return Exceeded(text, certain=True) if kind == "exceeded" else Failed(text)


def _suspicions(found: list[object]) -> Iterator[Suspicion]:
    for each in found:
        match each:
            case [str(kind), int(line), str(what), bool(grave)] if kind in _KINDS:
                yield Suspicion(kind=cast("SuspicionKind", kind), line=line, what=what, grave=grave)
            case _:
                raise _LostError("its process gives no answer that we know")


def _rendered(answer: _Message) -> tuple[str, Rendering]:
    match answer:
        case {"name": str(name), "kind": "text", "text": str(text)} if name in CONVERSATIONS:
            return name, Rendered(text)
        case {"name": str(name), "kind": "raised", "text": str(text)} if name in CONVERSATIONS:
            return name, Raised(text)
        case {"name": str(name), "kind": "failed", "text": str(text)} if name in CONVERSATIONS:
            return name, Failed(text)
        case {"name": str(name), "kind": "exceeded", "text": str(text)} if name in CONVERSATIONS:
            return name, Exceeded(text, certain=True)
        case _:
            raise _LostError("its process gives no answer that we know")

"""Asks an installed llama.cpp what it makes of a file.

llama.cpp is C++ that was not written for hostile files and ends its process where an
assertion fails, so it runs in a child with limits, a clean environment and no data of
the tensors: ``no_alloc`` makes it plan buffers without filling them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import assert_never, cast

from msgspec import Struct
from msgspec.structs import asdict

from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.probes.child import Bounds, Talk, talk
from gguf_audit.runtime.llama_cpp import FlashAttention
from gguf_audit.runtime.measured import Allocated, Declined, Outcome, Probe, Unmeasured

__all__ = [
    "INSTALL",
    "LIBRARY_VARIABLE",
    "Context",
    "Library",
    "find_library",
    "measure",
    "probe",
    "tokenize",
    "understood",
]

#: What brings a llama.cpp that we know how to ask.
INSTALL = "pip install 'gguf-audit[probe]'"
#: Names a libllama.so to ask instead.
LIBRARY_VARIABLE = "GGUF_AUDIT_LIBLLAMA"

#: Import name, distribution and place of the library in it.
_PACKAGES = (
    ("xllamacpp", "xllamacpp", "xllamacpp*.so"),
    ("llama_cpp", "llama-cpp-python", "lib/libllama.so"),
)
_CHILD = Path(__file__).with_name("_libllama.py")
_CRASHES = frozenset(
    {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}
)
#: What llama.cpp says where our own limit on memory stopped it.
_NO_MEMORY = re.compile(r"failed to allocate|unable to allocate|bad_alloc|not enough memory")
#: The file and line of a failed assertion, or what an uncaught exception says.
_LAST_WORDS = re.compile(r"(?:^|/)([\w.-]+:\d+: .+)$|what\(\): +(.+)$", re.MULTILINE)


class Library(Struct, frozen=True, kw_only=True):
    """A shared library that has llama.cpp in it."""

    path: Path
    #: Where it came from, ``xllamacpp 2026.10.11549``.
    origin: str


class Context(Struct, frozen=True, kw_only=True):
    """Settings of one context, by the names of ``runtime.llama_cpp.plan``."""

    context: int
    parallel: int = 1
    batch: int = 2048
    ubatch: int = 512
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    swa_full: bool = False
    kv_unified: bool = False
    flash_attn: FlashAttention = "auto"


def find_library() -> Library | Absent:
    """Return the llama.cpp to ask: the named one, else one of a known package's."""
    if sys.platform != "linux":
        return Absent("a llama.cpp can only be asked on Linux")
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        path = Path(named)
        if not path.is_file():
            return Absent(f"{LIBRARY_VARIABLE} names no file: {named}")
        return Library(path=path.absolute(), origin=path.name)
    for module, distribution, place in _PACKAGES:
        # Finding a top-level package doesn't import it.
        spec = importlib.util.find_spec(module)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder).glob(place)):
                version = importlib.metadata.version(distribution)
                return Library(path=path.absolute(), origin=f"{distribution} {version}")
    return Absent(f"no llama.cpp is installed: {INSTALL}")


def probe(model: Path, lengths: Sequence[int]) -> Probe | Absent:
    """Load a model's header in the installed llama.cpp and make one context per length."""
    library = find_library()
    if isinstance(library, Absent):
        return library
    contexts = [Context(context=length) for length in lengths]
    runtime, outcomes = measure(library, model, contexts)
    return Probe(runtime=runtime, outcomes=dict(zip(lengths, outcomes, strict=True)))


def measure(
    library: Library, model: Path, contexts: Sequence[Context], *, metadata_only: bool = False
) -> tuple[str, tuple[Outcome, ...]]:
    """Return the library's name and version, and what it did for each context.

    ``metadata_only`` lets llama.cpp invent every tensor that the architecture wants.
    After a crash the contexts that are left get a new process.
    """
    outcomes: list[Outcome] = []
    runtime = f"llama.cpp ({library.origin})"
    while len(outcomes) < len(contexts):
        runs = [asdict(context) for context in contexts[len(outcomes) :]]
        said = _talk(library, model, {"metadata_only": metadata_only, "runs": runs})
        runtime, told, loaded = understood(said, library, len(contexts) - len(outcomes))
        # What keeps a model from being loaded does so for every context.
        outcomes += told if loaded else told[:1] * len(contexts)
    return runtime, tuple(outcomes[: len(contexts)])


def tokenize(
    library: Library, model: Path, texts: Sequence[str]
) -> tuple[str, tuple[tuple[int, ...], ...] | Absent]:
    """Return the library's name and version, and the ids of every text by a vocabulary.

    Control tokens in a text are meant as such; nothing is added around it.
    """
    said = _talk(library, model, {"texts": list(texts)})
    runtime, ids = f"llama.cpp ({library.origin})", list[tuple[int, ...]]()
    for answer in said.answers:
        match answer:
            case {"version": version, "build": build}:
                runtime = _runtime(library, version, build)
            case {"loaded": True}:
                continue
            case {"ids": list()}:
                ids.append(tuple(cast("list[int]", answer["ids"])))
            case {"refused": str(message)}:
                return runtime, Absent(f"{runtime} refuses the vocabulary: {_shown(message)}")
            case {"unusable": str(reason)}:
                return runtime, Absent(f"{runtime} can't be asked: {reason}")
            case _:
                return runtime, Absent(f"{runtime} gave no answer that we know")
    if len(ids) < len(texts):
        return runtime, Absent(_last_words(_death(said, loaded=True)))
    return runtime, tuple(ids)


def _last_words(outcome: Outcome) -> str:
    match outcome:
        case Declined():
            return f"llama.cpp dies of the vocabulary: {outcome.message}"
        case Unmeasured():
            return outcome.reason
        case Allocated():
            raise AssertionError("a process that ended has allocated nothing")
        case _:
            assert_never(outcome)


def understood(said: Talk, library: Library, wanted: int) -> tuple[str, list[Outcome], bool]:
    """Return the runtime's name, one outcome at least, and whether the model was loaded."""
    runtime, loaded = f"llama.cpp ({library.origin})", False
    outcomes: list[Outcome] = []
    for answer in said.answers:
        match answer:
            case {"version": version, "build": build}:
                runtime = _runtime(library, version, build)
            case {"loaded": True}:
                loaded = True
            case {"bytes": int(size), "caches": list()}:
                lines = cast("list[object]", answer["caches"])
                outcomes.append(Allocated(bytes=size, caches=tuple(map(str, lines))))
            case {"refused": str(message)}:
                outcomes.append(_declined(message, loaded=loaded))
            case {"unusable": str(reason)}:
                outcomes += [Unmeasured(f"{runtime} can't be asked: {reason}")] * wanted
            case _:
                outcomes += [Unmeasured(f"{runtime} gave no answer that we know")] * wanted
    settled = len(outcomes) >= (wanted if loaded else 1)
    return runtime, outcomes if settled else [*outcomes, _death(said, loaded=loaded)], loaded


def _runtime(library: Library, version: object, build: object) -> str:
    number = f" b{build}" if build else ""
    name = f" {version}" if version else ""
    return f"llama.cpp{name}{number} ({library.origin})"


def _declined(message: str, *, loaded: bool) -> Outcome:
    shown = _shown(message)
    if _NO_MEMORY.search(message):
        return Unmeasured(f"llama.cpp ran out of the memory we give it: {shown}")
    return Declined(message=shown, during="context" if loaded else "load")


def _death(said: Talk, *, loaded: bool) -> Outcome:
    if said.code is None:
        return Unmeasured(said.reason)
    if said.code >= 0 or -said.code not in _CRASHES:
        what = f"signal {-said.code}" if said.code < 0 else f"exit code {said.code}"
        return Unmeasured(f"llama.cpp's process ended early, {what}: {_shown(said.complaints)}")
    if _NO_MEMORY.search(said.complaints):
        return Unmeasured("llama.cpp ran out of the memory we give it")
    found = [first or second for first, second in _LAST_WORDS.findall(said.complaints)]
    message = found[0] if found else signal.Signals(-said.code).name
    return Declined(message=_shown(message), kind="aborts", during="context" if loaded else "load")


def _shown(text: str) -> str:
    line = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    limit = LIMITS.shown_characters
    return line if len(line) <= limit else f"{line[:limit]}..."


def _talk(library: Library, model: Path, wanted: Mapping[str, object]) -> Talk:
    return talk(
        _CHILD,
        {"library": str(library.path), "model": str(model.absolute()), **wanted},
        name="llama.cpp",
        bounds=Bounds(
            memory_bytes=LIMITS.probe_memory_bytes,
            seconds=LIMITS.probe_seconds,
            output_bytes=LIMITS.probe_output_bytes,
        ),
        environment={"GGML_NO_BACKTRACE": "1", "LD_LIBRARY_PATH": str(library.path.parent)},
    )

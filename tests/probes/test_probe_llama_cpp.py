"""The parent's side of a probe, with children that are small scripts."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path

import pytest
from msgspec.structs import fields

from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.probes import llama_cpp
from gguf_audit.probes.llama_cpp import (
    LIBRARY_VARIABLE,
    Context,
    Library,
    find_library,
    measure,
    probe,
)
from gguf_audit.runtime import llama_cpp as planner
from gguf_audit.runtime.measured import Allocated, Declined, Outcome, Probe, Unmeasured

LIBRARY = Library(path=Path("/nowhere/libllama.so"), origin="a package 1")
RUNTIME = "llama.cpp 1.2 b7 (a package 1)"
SHORT, LONG = Context(context=4096), Context(context=32768)

#: What every child begins with: ``say`` answers, ``runs`` are the contexts asked for.
BEGIN = """
import json, os, sys, time
request = json.load(sys.stdin)
runs = request["runs"]
def say(**answer):
    print(json.dumps(answer), flush=True)
def fits(run):
    say(bytes=run["context"] * 2, caches=["a line"])
say(version="1.2", build=7)
"""

Child = Callable[[str], None]


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    def write(script: str) -> None:
        path = tmp_path / "child.py"
        path.write_text(BEGIN + textwrap.dedent(script), "utf-8")
        monkeypatch.setattr(llama_cpp, "_CHILD", path)

    return write


def outcomes(contexts: Sequence[Context] = (SHORT, LONG)) -> tuple[Outcome, ...]:
    runtime, found = measure(LIBRARY, Path("model.gguf"), contexts)
    assert runtime == RUNTIME
    return found


def test_bytes_of_every_context(child: Child) -> None:
    child("say(loaded=True)\nfor run in runs: fits(run)")
    assert outcomes() == (
        Allocated(bytes=8192, caches=("a line",)),
        Allocated(bytes=65536, caches=("a line",)),
    )


def test_every_setting_is_passed_on(child: Child) -> None:
    child("say(refused=json.dumps([request, runs]))")
    context = Context(
        context=1,
        parallel=2,
        batch=3,
        ubatch=4,
        cache_type_k="q8_0",
        cache_type_v="f32",
        swa_full=True,
        kv_unified=True,
        flash_attn="off",
    )
    (found,) = outcomes([context])
    assert isinstance(found, Declined)
    assert found.message.startswith('[{"library": "/nowhere/libllama.so", "model": "/')


def test_what_keeps_a_model_from_loading_does_so_for_every_context(child: Child) -> None:
    child("say(refused='no such key')")
    assert outcomes() == (Declined(message="no such key"),) * 2


def test_a_refused_context_is_one_of_several(child: Child) -> None:
    child("say(loaded=True)\nsay(refused='too long')\nfits(runs[1])")
    assert outcomes() == (
        Declined(message="too long", during="context"),
        Allocated(bytes=65536, caches=("a line",)),
    )


def test_after_a_crash_the_rest_is_asked_anew(child: Child) -> None:
    child(
        """
        say(loaded=True)
        for run in runs:
            if run["context"] == 4096:
                sys.stderr.write("/home/x/ggml/src/ggml.c:12: GGML_ASSERT(a) failed\\n")
                sys.stderr.flush()
                os.abort()
            fits(run)
        """
    )
    assert outcomes([LONG, SHORT, LONG]) == (
        Allocated(bytes=65536, caches=("a line",)),
        Declined(message="ggml.c:12: GGML_ASSERT(a) failed", kind="aborts", during="context"),
        Allocated(bytes=65536, caches=("a line",)),
    )


def test_a_crash_while_loading_is_one_for_every_context(child: Child) -> None:
    child("os.kill(os.getpid(), 11)")
    assert outcomes() == (Declined(message="SIGSEGV", kind="aborts"),) * 2


def test_an_uncaught_exception_tells_what_it_was(child: Child) -> None:
    child(
        """
        sys.stderr.write("terminate called after throwing 'std::out_of_range'\\n")
        sys.stderr.write("  what():  unordered_map::at\\n")
        sys.stderr.flush()
        os.abort()
        """
    )
    assert outcomes([SHORT]) == (Declined(message="unordered_map::at", kind="aborts"),)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("say(unusable='other fields')", f"{RUNTIME} can't be asked: other fields"),
        ("say(odd=1)", f"{RUNTIME} gave no answer that we know"),
        ("sys.exit(3)", "llama.cpp's process ended early, exit code 3: "),
        ("os.kill(os.getpid(), 9)", "llama.cpp's process ended early, signal 9: "),
        (
            "say(refused='failed to allocate buffer')",
            "llama.cpp ran out of the memory we give it: failed to allocate buffer",
        ),
        (
            "sys.stderr.write('what(): std::bad_alloc'); sys.stderr.flush(); os.abort()",
            "llama.cpp ran out of the memory we give it",
        ),
        ("print('{not json')", "llama.cpp's process ended early, exit code 0: "),
    ],
)
def test_what_is_no_verdict_of_llama_cpp_is_not_taken_for_one(
    child: Child, script: str, reason: str
) -> None:
    child(script)
    assert outcomes() == (Unmeasured(reason),) * 2


def test_a_child_that_hangs_is_ended(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp, "LIMITS", LIMITS._replace(probe_seconds=1))
    child("say(loaded=True)\nfits(runs[0])\nif runs[0]['context'] == 4096: time.sleep(60)")
    assert outcomes() == (
        Allocated(bytes=8192, caches=("a line",)),
        Unmeasured("llama.cpp took longer than 1 s"),
    )


def test_a_child_that_floods_is_ended(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp, "LIMITS", LIMITS._replace(probe_output_bytes=1000))
    child("while True: sys.stderr.write('x' * 1000)")
    found = measure(LIBRARY, Path("model.gguf"), [SHORT])
    assert found == ("llama.cpp (a package 1)", (Unmeasured("llama.cpp said over 1000 bytes"),))


def test_nothing_of_ours_is_in_its_environment(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    child("say(refused=' '.join(sorted(os.environ)) + ' ' + os.getcwd())")
    (found,) = outcomes([SHORT])
    # LC_CTYPE is what an interpreter sets for itself in the C locale.
    names = "GGML_NO_BACKTRACE LC_ALL LD_LIBRARY_PATH /"
    assert isinstance(found, Declined)
    assert found.message.replace("LC_CTYPE ", "") == names


def test_its_words_are_cut_and_harmless(child: Child) -> None:
    child("say(refused='\\x1b[31m' + 'x' * 1000)")
    (found,) = outcomes([SHORT])
    assert found == Declined(message="[31m" + "x" * (LIMITS.shown_characters - 4) + "...")


def test_probe_is_one_sequence_at_every_length(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp, "find_library", lambda: LIBRARY)
    child("say(loaded=True)\nfor run in runs: fits(run)")
    assert probe(Path("model.gguf"), (4096, 8192)) == Probe(
        runtime=RUNTIME,
        outcomes={
            4096: Allocated(bytes=8192, caches=("a line",)),
            8192: Allocated(bytes=16384, caches=("a line",)),
        },
    )


def test_probe_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp, "find_library", lambda: Absent("none"))
    assert probe(Path("model.gguf"), (4096,)) == Absent("none")


# Which library


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder to install into, beside which nothing is installed."""
    monkeypatch.delenv(LIBRARY_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def install(folder: Path, module: str, distribution: str, library: str) -> Path:
    path = folder / module / library
    path.parent.mkdir(parents=True)
    path.touch()
    # Importing it would fail the test.
    (folder / module / "__init__.py").write_text("raise AssertionError", "utf-8")
    facts = folder / f"{distribution.replace('-', '_')}-2.5.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 2.5\n", "utf-8"
    )
    return path


def test_no_library_says_what_brings_one(packages: Path) -> None:
    assert packages.is_dir()
    assert find_library() == Absent("no llama.cpp is installed: pip install 'gguf-audit[probe]'")


def test_library_of_the_extra(packages: Path) -> None:
    path = install(packages, "xllamacpp", "xllamacpp", "xllamacpp.abi3.so")
    assert find_library() == Library(path=path, origin="xllamacpp 2.5")


def test_library_of_llama_cpp_python(packages: Path) -> None:
    path = install(packages, "llama_cpp", "llama-cpp-python", "lib/libllama.so")
    assert find_library() == Library(path=path, origin="llama-cpp-python 2.5")


def test_a_named_library_comes_first(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(packages, "xllamacpp", "xllamacpp", "xllamacpp.abi3.so")
    mine = packages / "libmine.so"
    mine.touch()
    monkeypatch.setenv(LIBRARY_VARIABLE, str(mine))
    assert find_library() == Library(path=mine, origin="libmine.so")


def test_a_named_library_that_is_none(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIBRARY_VARIABLE, str(packages / "gone.so"))
    assert find_library() == Absent(f"{LIBRARY_VARIABLE} names no file: {packages / 'gone.so'}")


def test_elsewhere_than_on_linux(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(packages, "xllamacpp", "xllamacpp", "xllamacpp.abi3.so")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert find_library() == Absent("a llama.cpp can only be asked on Linux")


def test_a_context_has_the_planner_s_settings() -> None:
    # The child and the acceptance tests pass them on by name.
    settings = set(signature(planner.plan).parameters) - {"subject"}
    assert {field.name for field in fields(Context)} == settings

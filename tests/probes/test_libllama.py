"""The child's side of a probe, as far as it goes without a llama.cpp."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from gguf_audit.probes import _libllama
from gguf_audit.probes._libllama import (
    CONTEXT_DEFAULTS,
    FLAG_DEFAULTS,
    MODEL_DEFAULTS,
    Defaults,
    Log,
    Params,
    TreeMap,
    TreeNode,
    UnusableError,
)
from gguf_audit.probes.llama_cpp import Context, Library, measure
from gguf_audit.runtime.llama_cpp import ELEMENT_TYPES
from gguf_audit.runtime.measured import Unmeasured


def params(defaults: Defaults) -> Params:
    filled = Params()
    for offset, (form, values) in defaults.items():
        filled.put(offset, form, *values)
    return filled


@pytest.mark.parametrize("defaults", [MODEL_DEFAULTS, CONTEXT_DEFAULTS], ids=["model", "context"])
def test_known_parameters_are_known_by_their_defaults(
    defaults: Defaults,
) -> None:
    params(defaults).expect("params", defaults)


@pytest.mark.parametrize("offset", CONTEXT_DEFAULTS)
def test_a_field_that_stands_elsewhere_is_noticed(offset: int) -> None:
    moved = params(CONTEXT_DEFAULTS)
    moved.put(offset, "<I", 77)
    with pytest.raises(UnusableError, match=f"at offset {offset}, known is"):
        moved.expect("params", CONTEXT_DEFAULTS)


def test_flags_don_t_overlap_the_types() -> None:
    filled = params(CONTEXT_DEFAULTS)
    filled.put(136, "<6?", *FLAG_DEFAULTS)
    assert filled.at(104, "<ii") == (1, 1)
    assert filled.at(128, "<6?") == (False,) * 6


def test_every_cache_type_that_we_plan_can_be_asked_for() -> None:
    assert set(_libllama.TYPES) == set(ELEMENT_TYPES)


def node(context: int, left: TreeNode | None = None, right: TreeNode | None = None) -> TreeNode:
    address = {
        name: ctypes.addressof(child) if child else 0
        for name, child in (("left", left), ("right", right))
    }
    return TreeNode(context=context, **address)


def test_every_node_of_a_breakdown_is_read() -> None:
    low, high = node(1), node(4)
    root = node(2, low, high)
    tree = TreeMap(root=ctypes.addressof(root), count=3)
    assert sorted(found.context for found in _libllama.nodes(tree)) == [1, 2, 4]


def test_an_empty_breakdown_has_no_nodes() -> None:
    assert list(_libllama.nodes(TreeMap(root=0, count=0))) == []


def test_a_breakdown_that_goes_in_circles_is_noticed() -> None:
    root = node(2)
    root.left = ctypes.addressof(root)
    with pytest.raises(UnusableError, match="isn't laid out"):
        list(_libllama.nodes(TreeMap(root=ctypes.addressof(root), count=1)))


def test_a_count_that_can_t_be_is_noticed() -> None:
    with pytest.raises(UnusableError, match="isn't laid out"):
        list(_libllama.nodes(TreeMap(root=0, count=2**40)))


KV = (
    "llama_kv_cache: size =   96.00 MiB ( 32768 cells,   3 layers,  1/1 seqs), "
    "K (f16):   48.00 MiB, V (f16):   48.00 MiB"
)
STATE = (
    "llama_memory_recurrent: size =   50.25 MiB (     1 cells,  32 layers,  1 seqs  0 rs_seq), "
    "R (f32):    2.25 MiB, S (f32):   48.00 MiB, P (f32):    0.00 MiB"
)
COMPRESSOR = (
    "llama_dsv4_comp_state: csa ratio = 4, state = 8 x 1024, streams = 1, rs_seq = 0, "
    "layers = 4, size =    0.25 MiB"
)
BUFFER = "llama_kv_cache:        CPU KV buffer size =     0.00 MiB"


def test_the_log_s_lines_about_caches_and_no_others() -> None:
    log = Log()
    for line in (KV, BUFFER, STATE, COMPRESSOR, "llama_context: n_ctx = 4096"):
        log.callback(2, f"{line}\n".encode(), None)
    assert log.caches() == [KV, STATE, COMPRESSOR]
    assert log.mebibytes() == [96.0, 50.25, 0.25]


@pytest.mark.parametrize("size", ["1.2.3", ".", "9" * 400, "-1.00", "96", "nan"])
def test_what_is_no_size_tells_none(size: str) -> None:
    log = Log()
    log.take(2, KV.replace("96.00", size).encode())
    assert (log.caches(), log.mebibytes()) == ([], [])


def test_the_log_s_last_errors_in_one_line() -> None:
    log = Log()
    assert log.errors() == "it gave no reason"
    for number in range(9):
        log.callback(4, f"error {number}\n".encode(), None)
    log.callback(5, b"...", None)
    assert log.errors() == "error 3; error 4; error 5; error 6; error 7; error 8"
    log.clear()
    assert log.errors() == "it gave no reason"


def test_a_library_that_is_no_llama_cpp_is_unusable() -> None:
    lines = Path("/proc/self/maps").read_text("utf-8").splitlines()
    libc = next(line.split()[-1] for line in lines if "libc.so" in line or "libc-" in line)
    library = Library(path=Path(libc), origin="libc")
    runtime, (found,) = measure(library, Path("model.gguf"), [Context(context=4096)])
    assert runtime == "llama.cpp (libc)"
    assert isinstance(found, Unmeasured)
    assert "can't be asked" in found.reason
    assert "undefined symbol: llama_log_set" in found.reason


def test_a_file_that_is_no_library_is_unusable(tmp_path: Path) -> None:
    path = tmp_path / "libllama.so"
    path.write_bytes(b"not a library")
    library = Library(path=path, origin="a file")
    _, found = measure(library, Path("model.gguf"), [Context(context=1), Context(context=2)])
    assert found[0] == found[1]
    assert isinstance(found[0], Unmeasured)
    assert "can't be asked" in found[0].reason

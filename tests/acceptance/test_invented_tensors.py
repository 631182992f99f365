"""Our tables beside the tensors that a real llama.cpp makes of the same metadata."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gguf_audit import arch, open_gguf
from gguf_audit.arch.tensors import Inventory, inventory, same_shape
from gguf_audit.arch.tensors._tables import known
from gguf_audit.errors import Refused
from gguf_audit.fields import Fields
from gguf_audit.parts import Absent
from gguf_audit.probes.llama_cpp import find_library
from gguf_audit.testing import TensorSpec, build_gguf, write_gguf
from llama_recipes import PLAIN, VARIANT, Dims, recipe

pytestmark = pytest.mark.acceptance

CHILD = Path(__file__).with_name("invented_tensors.py")
NAMES = sorted(known())
#: What llama.cpp doesn't make tensors of with our recipe, and why.
ASIDE = {
    "gemma4-assistant": "a draft model: its target's width is a key of its own",
    "plm": "its graph fails an assertion: we refuse the metadata",
}

Shapes = dict[str, list[int]]


def ask(path: Path, *real: str) -> Shapes | str:
    """Return the tensors that llama.cpp makes, or why it makes none."""
    library = find_library()
    assert not isinstance(library, Absent), library.reason
    done = subprocess.run(
        [sys.executable, str(CHILD), str(library.path), str(path), *real],
        capture_output=True,
        text=True,
        env={
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LD_LIBRARY_PATH": str(library.path.parent),
            "GGML_NO_BACKTRACE": "1",
        },
        check=False,
    )
    if not done.stdout:
        return done.stderr[-300:]
    answer: Shapes | str = json.loads(done.stdout)
    return answer


def ours(path: Path, present: Shapes) -> Inventory:
    gguf = open_gguf(path)
    fields = Fields(gguf.architecture or "", gguf.fields)
    found = inventory(fields, arch.implied_layout(fields), present)
    assert not isinstance(found, Absent)
    return found


@pytest.mark.parametrize("dims", [PLAIN, VARIANT], ids=["plain", "variant"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ASIDE])
def test_every_tensor_is_llama_cpp_s(name: str, dims: Dims, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.gguf"
    path.write_bytes(build_gguf(recipe(name, dims)))
    theirs = ask(path)
    assert not isinstance(theirs, str), theirs
    try:
        found = ours(path, theirs)
    except Refused:
        pytest.fail("we refuse what llama.cpp takes")
    assert [slot.name for slot in found.missing(theirs)] == []
    assert found.homeless(theirs) == ()
    slots = found.slots
    assert {
        tensor: (slots[tensor].shape, shape)
        for tensor, shape in theirs.items()
        if tensor in slots and not same_shape(slots[tensor], tuple(shape))
    } == {}


@pytest.mark.parametrize("name", ["llama", "gemma3", "qwen3moe", "deepseek2", "mamba2", "t5"])
def test_what_we_require_is_needed_and_enough(name: str, tmp_path: Path) -> None:
    keys = recipe(name, VARIANT)
    path = tmp_path / "metadata.gguf"
    path.write_bytes(build_gguf(keys))
    needed = [slot for slot in ours(path, {}).slots.values() if slot.required]
    specs = [
        TensorSpec(name=slot.name, shape=[256 if n is None else n for n in slot.shape], type="F32")
        for slot in needed
    ]
    whole = write_gguf(tmp_path / "whole.gguf", keys, specs)
    assert isinstance(ask(whole, "real"), dict)
    # One of each kind, in the last block that has it.
    kinds = {slot.name.rpartition(f"blk.{slot.layer}.")[2]: slot.name for slot in needed}
    for dropped in kinds.values():
        rest = [spec for spec in specs if spec.name != dropped]
        assert isinstance(ask(write_gguf(tmp_path / "cut.gguf", keys, rest), "real"), str), dropped

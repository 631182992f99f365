"""Our bytes beside those of a real llama.cpp, for every architecture that we name."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import asdict

from gguf_audit import arch, open_gguf, plan_llama_cpp
from gguf_audit.errors import Refused
from gguf_audit.parts import Absent
from gguf_audit.probes.llama_cpp import Context, Library, find_library, measure
from gguf_audit.runtime.measured import Allocated, Declined, Outcome, Unmeasured
from gguf_audit.testing import build_gguf
from llama_recipes import PLAIN, VARIANT, recipe

pytestmark = pytest.mark.acceptance

NAMES = [name for known in arch.architectures() for name in known.names]

#: What llama.cpp can't make a context of with metadata alone, and why. Whatever we say
#: of them isn't compared; where one comes to life, this list has to be corrected.
ASIDE = {
    "clef": "its decision head is no tensor that llama.cpp invents",
    "eagle3": "a draft model: its context wants the one of its target",
    "gemma4-assistant": "a draft model: its cache is its target's",
    # src/models/plm.cpp gives build_attn its values as one flat row, llama_kv_cache::cpy_v
    # takes the tokens for heads: true of every file, at builds 11434 and 11549.
    "plm": "its graph fails an assertion",
    "rwkv6qwen2": "its graph crashes on the tensors that llama.cpp invents",
}

CONTEXTS = (
    Context(context=4096),
    Context(context=32768),
    Context(context=0),
    Context(context=10000, parallel=3),
    Context(context=32768, parallel=4),
    Context(context=32768, parallel=4, kv_unified=True),
    Context(context=32768, ubatch=2048),
    Context(context=32768, swa_full=True),
    Context(context=32768, flash_attn="off"),
    Context(context=32768, cache_type_k="q8_0", cache_type_v="q8_0"),
    Context(context=32768, cache_type_k="q8_0"),
)


@pytest.fixture(scope="session")
def library() -> Library:
    found = find_library()
    assert not isinstance(found, Absent), found.reason
    return found


def _ours(path: Path, context: Context) -> int | str:
    """Return our bytes, or how we say that llama.cpp fails."""
    try:
        return plan_llama_cpp(open_gguf(path), **asdict(context)).total_bytes
    except Refused as refused:
        return refused.kind


def _theirs(outcome: Outcome) -> int | str:
    match outcome:
        case Allocated():
            return outcome.bytes
        case Declined():
            return outcome.kind
        case Unmeasured():
            raise AssertionError(outcome.reason)


@pytest.mark.parametrize("dims", [PLAIN, VARIANT], ids=["plain", "variant"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ASIDE])
def test_every_byte_is_llama_cpp_s(
    name: str, dims: object, library: Library, tmp_path: Path
) -> None:
    assert dims in (PLAIN, VARIANT)
    path = tmp_path / f"{name}.gguf"
    path.write_bytes(build_gguf(recipe(name, PLAIN if dims is PLAIN else VARIANT)))
    runtime, outcomes = measure(library, path, CONTEXTS, metadata_only=True)
    pairs = {
        context: (_ours(path, context), _theirs(outcome))
        for context, outcome in zip(CONTEXTS, outcomes, strict=True)
    }
    different = {context: pair for context, pair in pairs.items() if pair[0] != pair[1]}
    assert not different, f"{runtime}: ours, its {different} {outcomes[0]}"
    # A recipe that llama.cpp won't have says nothing of the architecture.
    assert isinstance(outcomes[0], Allocated), f"{runtime}: {outcomes[0]}"


@pytest.mark.parametrize("name", ASIDE)
def test_what_stands_aside_still_has_to(name: str, library: Library, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.gguf"
    path.write_bytes(build_gguf(recipe(name, PLAIN)))
    _, (outcome,) = measure(library, path, CONTEXTS[:1], metadata_only=True)
    assert isinstance(outcome, Declined), outcome

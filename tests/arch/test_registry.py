"""Architectures are found by name, and none is claimed twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import gguf_audit.arch as package
from gguf_audit.arch import architectures, by_name, converter_of
from gguf_audit.errors import MalformedError, UnsupportedError

FAMILIES = sorted(
    module.stem
    for module in Path(package.__file__).parent.glob("*.py")
    if not module.stem.startswith("_") and module.stem != "architecture"
)


def test_no_gguf_name_is_claimed_twice() -> None:
    names = Counter(name for found in architectures() for name in found.names)
    assert [name for name, count in names.items() if count > 1] == []


def test_no_class_is_claimed_twice() -> None:
    names = Counter(
        name
        for found in architectures()
        for converter in found.converters
        for name in converter.takes
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_converters_write_architectures_that_are_known() -> None:
    written = {
        converter.writes
        for found in architectures()
        for converter in found.converters
        if isinstance(converter.writes, str)
    }
    assert [name for name in sorted(written) if by_name(name) is None] == []


def test_a_converter_stands_with_the_architecture_that_it_writes() -> None:
    strays = [
        converter.takes
        for found in architectures()
        for converter in found.converters
        if isinstance(converter.writes, str) and converter.writes not in found.names
    ]
    assert strays == []


def test_every_known_architecture_is_here() -> None:
    assert len({name for found in architectures() for name in found.names}) >= 150


@pytest.mark.parametrize("name", ["llama", "gemma3", "deepseek2", "qwen35", "rwkv7", "bert"])
def test_an_architecture_is_found_by_its_name(name: str) -> None:
    found = by_name(name)
    assert found is not None
    assert name in found.names


@pytest.mark.parametrize("name", ["", "Llama", "llama ", "mamba-9000"])
def test_names_are_matched_exactly(name: str) -> None:
    assert by_name(name) is None


def test_families_are_imported_when_they_are_needed() -> None:
    code = (
        "import sys, gguf_audit.arch as arch; "
        "assert 'gguf_audit.arch.llama' not in sys.modules; arch.by_name('llama'); "
        "assert 'gguf_audit.arch.llama' in sys.modules; assert 'numpy' not in sys.modules"
    )
    source = Path(package.__file__).parent.parent.parent
    subprocess.run([sys.executable, "-c", code], check=True, cwd=source)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_says_where_its_facts_are_from(family: str) -> None:
    module = sys.modules.get(f"gguf_audit.arch.{family}") or __import__(
        f"gguf_audit.arch.{family}", fromlist=["ARCHITECTURES"]
    )
    assert module.ARCHITECTURES
    assert "11434" in (module.__doc__ or "")


def test_a_class_that_nobody_converts_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="'SpaceForCausalLM' isn't covered") as caught:
        converter_of({"architectures": ["SpaceForCausalLM"]})
    assert caught.value.where.key == "architectures"


@pytest.mark.parametrize("classes", [None, [], "LlamaForCausalLM", [1], {}])
def test_a_config_must_name_its_class(classes: object) -> None:
    with pytest.raises(MalformedError, match="architectures"):
        converter_of({"architectures": classes})  # type: ignore[dict-item]


def test_a_long_class_name_is_cut() -> None:
    with pytest.raises(UnsupportedError) as caught:
        converter_of({"architectures": ["A" * 100_000]})
    assert len(caught.value.message) < 1000


def test_savings_spare_models_that_save_nothing() -> None:
    spared = [found for found in architectures() if found.spared]
    assert [found.names for found in spared] == [("gemma3",)]
    assert all(found.saves for found in spared)

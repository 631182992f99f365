"""Every fault that we can think of, in some of our own fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from gguf_audit import open_gguf
from gguf_audit.gguf import ValueType
from gguf_audit.testing import write_gguf
from injected import outcomes, told_twice, wrong
from injector import FAULTS, Fault, TensorFault, inject
from recipes import read_recipe

TOKENS = ("tokenizer.",)
RECIPES = ("small-llama", "gemma-3-270m", "deepseek-v2-lite", "qwen3.5-9b", "gpt-oss-20b")


@pytest.mark.parametrize("name", RECIPES)
def test_every_fault_is_one_finding_that_names_its_key(name: str, tmp_path: Path) -> None:
    recipe = read_recipe(name)
    assert recipe.against is not None
    # A vocabulary of full size takes a second to write.
    keys = {key: value for key, value in recipe.fields.items() if not key.startswith(TOKENS)}
    right = write_gguf(tmp_path / "right.gguf", keys, recipe.tensors)
    found = list(outcomes(name, right, recipe.against, tmp_path))
    assert len({outcome.fault.name for outcome in found}) >= 30
    assert [said for outcome in found if (said := wrong(outcome)) is not None] == []
    alone = outcomes(name, right, None, tmp_path)
    assert [said for outcome in alone if (said := told_twice(outcome)) is not None] == []


def test_a_fault_is_the_only_difference(tmp_path: Path) -> None:
    right = open_gguf(read_recipe("small-llama").write(tmp_path))
    same, tensors = {**right.fields}, [*right.tensors]
    faults = {fault.name: fault for fault in FAULTS}
    assert len(faults) == len(FAULTS)
    keys, specs = inject(right, faults["retype block_count"]) or ({}, [])
    assert keys.keys() == same.keys()
    assert keys["llama.block_count"] == (ValueType.INT32, same["llama.block_count"].value)
    assert [spec.name for spec in specs] == tensors
    assert inject(right, faults["lose ssm.state_size"]) is None
    assert inject(right, faults["flip attention.causal"]) is None
    _, specs = inject(right, faults["drop a tensor"]) or ({}, [])
    assert len(specs) == len(tensors) - 1
    assert {type(fault) for fault in FAULTS} == {Fault, TensorFault}

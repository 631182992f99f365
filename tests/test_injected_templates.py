"""Every fault of a chat template that we can think of, in a fixture of our own."""

from __future__ import annotations

from pathlib import Path

from injected_templates import FAULTS, matrix, outcomes, wrong
from recipes import read_recipe


def test_every_fault_is_one_finding_of_its_rule(tmp_path: Path) -> None:
    recipe = read_recipe("small-llama")
    assert recipe.against is not None
    right = recipe.write(tmp_path)
    found = list(outcomes("small-llama", right, recipe.against, tmp_path))
    assert [said for outcome in found if (said := wrong(outcome)) is not None] == []
    assert matrix(found) == {fault.name: (1, 1) for fault in FAULTS}
    assert len(FAULTS) >= 25

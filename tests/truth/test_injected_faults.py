"""Every fault that we can think of, in every conversion that the official converter made."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from injected import UNSEEN, Outcome, matrix, outcomes, told_twice, wrong

pytestmark = pytest.mark.truth

LOGGER = logging.getLogger(__name__)
SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))
FILES = [
    file
    for file in sorted(SHARED.glob("pairs/*/model.gguf"))
    if (file.parent / "hf" / "config.json").is_file()
]


def _name(file: Path) -> str:
    return file.parent.name


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    folder = tmp_path_factory.mktemp("broken")
    return [
        outcome
        for file in FILES
        for outcome in outcomes(_name(file), file, str(file.parent / "hf"), folder)
    ]


def test_every_fault_is_one_finding_that_names_its_key(found: list[Outcome]) -> None:
    assert [said for outcome in found if (said := wrong(outcome)) is not None] == []


def test_what_is_found_of_each_kind(found: list[Outcome]) -> None:
    # The table: --log-cli-level=info.
    table = matrix(found)
    for name, (told, had) in table.items():
        LOGGER.info("%s: %d of %d", name, told, had)
    assert len(table) >= 100
    missed = {name for name, (told, had) in table.items() if told < had}
    assert missed == {name for name, subject in UNSEEN if subject in {*map(_name, FILES)}}


def test_a_fault_is_one_finding_without_a_reference(tmp_path: Path) -> None:
    found = (outcome for file in FILES for outcome in outcomes(_name(file), file, None, tmp_path))
    assert [said for outcome in found if (said := told_twice(outcome)) is not None] == []

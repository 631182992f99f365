"""Every fault of a chat template that we can think of, in what the official converter made."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from injected_templates import Outcome, matrix, outcomes, wrong

pytestmark = pytest.mark.truth

LOGGER = logging.getLogger(__name__)
SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))
FILES = [
    file
    for file in sorted(SHARED.glob("pairs/*/model.gguf"))
    if (file.parent / "hf" / "tokenizer_config.json").is_file()
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    folder = tmp_path_factory.mktemp("broken")
    return [
        outcome
        for file in FILES
        for outcome in outcomes(file.parent.name, file, str(file.parent / "hf"), folder)
    ]


def test_every_fault_is_one_finding_of_its_rule(found: list[Outcome]) -> None:
    # The table: --log-cli-level=info.
    for name, (told, had) in matrix(found).items():
        LOGGER.info("%s: %d of %d", name, told, had)
    assert [said for outcome in found if (said := wrong(outcome)) is not None] == []
    assert len({outcome.subject for outcome in found}) >= 30

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


def has_template(folder: Path) -> bool:
    """Tell whether there is one to compare with: the converter has one of its own for RWKV."""
    config = folder / "tokenizer_config.json"
    return config.is_file() and "chat_template" in config.read_text("utf-8")


FILES = [
    file for file in sorted(SHARED.glob("pairs/*/model.gguf")) if has_template(file.parent / "hf")
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

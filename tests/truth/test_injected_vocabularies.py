"""Every fault of a vocabulary that we can think of, in every conversion of the converter's."""

from __future__ import annotations

import logging
import os
from collections import Counter
from pathlib import Path

import pytest

from injected_tokenizer import FAULTS, Told, told

pytestmark = pytest.mark.truth

LOGGER = logging.getLogger(__name__)
SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))
FILES = [
    file
    for file in sorted(SHARED.glob("pairs/*/model.gguf"))
    if (file.parent / "hf" / "config.json").is_file()
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    folder = tmp_path_factory.mktemp("broken")
    return [
        each
        for file in FILES
        for each in told(file.parent.name, file, str(file.parent / "hf"), folder)
    ]


def test_every_fault_is_one_finding(found: list[Told]) -> None:
    assert [each.wrong for each in found if each.wrong is not None] == []


def test_every_kind_is_found_in_some_pair(found: list[Told]) -> None:
    # The table: --log-cli-level=info.
    table = Counter(each.fault.name for each in found)
    for name, count in table.items():
        LOGGER.info("%s: %d", name, count)
    assert {fault.name for fault in FAULTS} - table.keys() == set()

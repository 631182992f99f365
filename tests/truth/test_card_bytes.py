"""What is pinned for the built-in cards, held against what the real llama.cpp took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truth_tables import Row, by, rows

pytestmark = pytest.mark.truth

PINNED: dict[str, Row] = json.loads(
    (Path(__file__).parent.parent / "card_figures.json").read_text("utf-8")
)
LENGTHS = (4096, 32768, 131072)
MIB = 1 << 20
MEASURED = [row for row in rows("config_truth") if row["name"].replace("__", "/", 1) in PINNED]
#: Keys that were added by hand to make a file load, so nobody keeps what was measured.
UNLOADABLE = {"LGAI-EXAONE__EXAONE-3.5-7.8B-Instruct"}


def test_most_cards_were_measured() -> None:
    assert len(MEASURED) >= 40


@pytest.mark.parametrize("row", MEASURED, ids=by(MEASURED, "name"))
def test_a_card_keeps_what_llama_cpp_took(row: Row) -> None:
    pinned = PINNED[row["name"].replace("__", "/", 1)]
    taken = {
        run["settings"]["n_ctx"]: run["bytes"] / MIB
        for run in row["runs"]
        if run["id"] == f"ctx{run['settings']['n_ctx']}" and run["status"] == "ok"
    }
    if row["name"] in UNLOADABLE:
        assert isinstance(pinned["kept"], str)
        return
    ours = dict(zip(LENGTHS, pinned["kept"], strict=True))
    assert pinned["architecture"] == row["gguf_arch"]
    assert {tokens: ours[tokens] for tokens in LENGTHS if tokens in taken} == {
        tokens: size for tokens, size in taken.items() if tokens in LENGTHS
    }
    assert len(taken) >= 2

"""Every built-in card: what a right conversion of it keeps, to the byte.

``card_figures.json`` has, for each card, its architecture and MiB at three lengths: what
llama.cpp keeps, what the architecture needs, and full attention. ``--update-golden``
writes it again; ``tests/truth`` holds it against the real llama.cpp.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gguf_audit
from gguf_audit.errors import AuditError, Refused
from gguf_audit.expectation import expected_fields
from gguf_audit.formats.card import list_cards
from gguf_audit.reference import open_checkpoint
from gguf_audit.runtime.ideal import ideal_bytes
from gguf_audit.runtime.llama_cpp import full_attention_bytes

TABLE = Path(__file__).parent / "card_figures.json"
LENGTHS = (4096, 32768, 131072)
MIB = 1 << 20


def figures(name: str) -> dict[str, Any]:
    """Return what we make of a card; ``kept`` is why llama.cpp refuses its conversion."""
    checkpoint = open_checkpoint(name)
    fields = expected_fields(checkpoint)
    needed = gguf_audit.ideal_layout(checkpoint)
    found: dict[str, Any] = {"architecture": fields.architecture}
    try:
        found["kept"] = [planned(checkpoint, tokens) for tokens in LENGTHS]
        found["full"] = [full_attention_bytes(fields, tokens) / MIB for tokens in LENGTHS]
    except Refused as refused:
        found["kept"] = refused.message
    found["needed"] = [ideal_bytes(needed, tokens) / MIB for tokens in LENGTHS]
    return found


def planned(checkpoint: gguf_audit.Checkpoint, tokens: int) -> float:
    return gguf_audit.plan_llama_cpp(checkpoint, context=tokens).total_bytes / MIB


def test_there_are_enough_cards() -> None:
    assert len(list_cards()) >= 40


def test_every_card_keeps_what_it_kept(update_golden: bool) -> None:
    found = {name: figures(name) for name in list_cards()}
    if update_golden:
        rows = (f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
        TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    assert found == json.loads(TABLE.read_text("utf-8"))


@pytest.mark.parametrize("name", list_cards())
def test_a_card_gives_every_layer(name: str) -> None:
    checkpoint = open_checkpoint(name)
    needed = gguf_audit.ideal_layout(checkpoint)
    try:
        kept = gguf_audit.expected_layout(checkpoint)
    except AuditError:
        kept = needed
    fields = expected_fields(checkpoint)
    trunk = (fields.integer("block_count") or 0) - (fields.integer("nextn_predict_layers") or 0)
    assert len(needed.layers) == trunk
    assert len(kept.layers) >= trunk
    assert any(True for _ in needed.stores())

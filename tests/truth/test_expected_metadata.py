"""Real checkpoints: what the real converter wrote, and what its file takes in llama.cpp."""

from __future__ import annotations

import ast
import json
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from gguf_audit.arch import expected_fields, ideal_layout
from gguf_audit.fields import Fields
from gguf_audit.formats.gguf import open_gguf
from gguf_audit.gguf import Array
from gguf_audit.layout import CacheLayout, Recurrent
from truth_tables import SHARED, Row, by, configs, measured, outcome, rows

pytestmark = pytest.mark.truth

#: Families of keys that ``expected_fields`` leaves out.
OTHERS = ("general.", "tokenizer.", "split.", "quantize.", "diffusion.", "xielu.")
CONVERTED = [
    row
    for row in rows("config_truth")
    if row["converter"]["via"] == "official" and row["metadata"] is not None
]
IDEALS = [row for row in rows("ideal") if row["confidence"] == "high"]
PAIRS = sorted((SHARED / "pairs").glob("*/model.gguf"))
STATE_BYTES = {"f32": 4, "bf16": 2, "f16": 2}
#: Notes of rows whose file only loads with keys that the converter doesn't write.
ADDED = re.compile(r"oracle only: keys .* did not write .* config: (\{.*\})")


def held(value: Any) -> Any:
    """Return what a file keeps of a value: 32 bits of a float."""
    if value == "-inf":
        return float("-inf")
    if isinstance(value, float):
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if isinstance(value, list | tuple):
        items = cast("Iterable[Any]", value)
        return tuple(held(item) for item in items)
    return value


def differences(expected: Fields, metadata: Mapping[str, Any]) -> list[str]:
    """Compare key by key; an alternative is as right."""
    ours = {field.key: held(field.value) for field in expected}
    real = {key: held(value) for key, value in metadata.items() if not key.startswith(OTHERS)}
    prefix = f"{expected.architecture}."
    return [
        f"{key}: {ours.get(key)!r}, the converter writes {real.get(key)!r}"
        for key in sorted({*ours, *real})
        if ours.get(key) != real.get(key)
        if real.get(key) not in map(held, expected.alternatives(key.removeprefix(prefix)))
    ]


def loadable(fields: Fields, notes: list[str] | None) -> Fields:
    """Return fields with what was added to the real file to make it load."""
    found = [match[1] for note in notes or () if (match := ADDED.match(note))]
    added = {key: value for text in found for key, value in ast.literal_eval(text).items()}
    extra = Fields.of(fields.architecture, added)
    return Fields(fields.architecture, {field.key: field for field in (*fields, *extra)})


def ideal_bytes(layout: CacheLayout, tokens: int) -> tuple[int, int]:
    """Return the bytes in f16 of attention, and of states in the model's own types."""
    attention = states = 0
    for _, store in layout.stores():
        if isinstance(store, Recurrent):
            states += sum(part.elements * STATE_BYTES[part.type] for part in store.parts)
            continue
        window = getattr(store, "window_tokens", None)
        cells = -(-tokens // getattr(store, "tokens_per_cell", 1))
        kept = cells if window is None else min(tokens, window)
        attention += 2 * kept * store.kv_heads * (store.key_length + store.value_length)
    return attention, states


@pytest.mark.parametrize("row", CONVERTED, ids=by(CONVERTED, "name"))
def test_a_config_gives_the_metadata_of_the_real_converter(row: Row) -> None:
    fields = expected_fields(configs(row["name"]))
    assert fields.architecture == row["gguf_arch"]
    assert differences(fields, row["metadata"]) == []


@pytest.mark.parametrize("row", CONVERTED, ids=by(CONVERTED, "name"))
def test_a_config_gives_the_bytes_of_the_real_file(row: Row) -> None:
    fields = loadable(expected_fields(configs(row["name"])), row["notes"])
    assert [outcome(fields, run["settings"]) for run in row["runs"]] == [
        measured(run) for run in row["runs"]
    ]


@pytest.mark.parametrize("row", IDEALS, ids=by(IDEALS, "name"))
def test_an_ideal_is_what_was_worked_out_by_hand(row: Row) -> None:
    layout = ideal_layout(configs(row["name"]))
    native = row["state_bytes_native"]
    wanted = {
        int(tokens): total - row["state_bytes_f32"]
        for tokens, total in row["ideal_bytes_f16"].items()
    }
    assert {tokens: ideal_bytes(layout, tokens) for tokens in wanted} == {
        tokens: (attention, native) for tokens, attention in wanted.items()
    }


@pytest.mark.parametrize("model", PAIRS, ids=[model.parent.name for model in PAIRS])
def test_a_conversion_holds_what_its_config_gives(model: Any) -> None:
    config = json.loads((model.parent / "hf/config.json").read_text("utf-8"))
    real = {
        key: tuple(field.value.items()) if isinstance(field.value, Array) else field.value
        for key, field in open_gguf(str(model)).fields.items()
    }
    fields = expected_fields(config)
    assert fields.architecture == real["general.architecture"]
    assert differences(fields, real) == []

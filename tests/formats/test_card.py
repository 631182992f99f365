"""The built-in cards are what they claim, and a card written out reads back the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gguf_audit.checkpoint import Checkpoint, Json, StoredTensor, Tokenizer
from gguf_audit.errors import AuditError, MalformedError, UnsupportedError
from gguf_audit.formats.card import card_of, find_card, list_cards, read_card
from gguf_audit.formats.checkpoint import read_checkpoint
from gguf_audit.parts import Absent
from gguf_audit.reference import open_checkpoint
from gguf_audit.sources import MemoryTree

_CARDS = resources.files("gguf_audit") / "cards"
_SCHEMA: Mapping[str, Any] = json.loads((_CARDS / "schema.json").read_text())
_FULL: dict[str, Json] = {
    "card": 1,
    "id": "a/b",
    "aliases": ["c/d"],
    "revision": "c0ffee",
    "published": False,
    "note": "derived",
    "config": {"architectures": ["X"], "bos_token_id": 1},
    "generation_config": {"temperature": 1.0},
    "tokenizer_config": {"bos_token": "<s>"},
    "chat_templates": {"default": "T"},
    "tokenizer": {
        "special_ids": {"bos": 1},
        "unsure_ids": ["eos"],
        "complete": False,
        "size": 2,
    },
    "tensors": {"w": ["BF16", 2, 3], "s": ["F32"]},
}


def _parts(checkpoint: Checkpoint) -> tuple[object, ...]:
    return checkpoint, checkpoint.tokenizer, checkpoint.tensors


def _document(name: str) -> dict[str, Any]:
    text = (_CARDS / (name.replace("/", "--", 1) + ".json")).read_text()
    document: dict[str, Any] = json.loads(text)
    return document


@pytest.mark.parametrize("name", list_cards())
def test_a_built_in_card_keeps_the_schema(name: str) -> None:
    document = _document(name)
    jsonschema.validate(document, _SCHEMA)
    assert document["id"] == name


@pytest.mark.parametrize("name", list_cards())
def test_a_built_in_card_survives_being_written(name: str, tmp_path: Path) -> None:
    found = find_card(name)
    assert found is not None
    path = tmp_path / "card.json"
    path.write_text(json.dumps(card_of(found)))
    jsonschema.validate(json.loads(path.read_text()), _SCHEMA)
    assert _parts(open_checkpoint(str(path))) == _parts(found)


def test_no_name_stands_for_two_cards() -> None:
    names = [name.lower() for name in list_cards()]
    names += [
        alias.lower() for name in list_cards() for alias in _document(name).get("aliases", [])
    ]
    assert sorted(names) == sorted(set(names))


def test_finds_by_id_and_alias_whatever_their_case() -> None:
    for name in ("openai-community/gpt2", "OpenAI-community/GPT2"):
        assert getattr(find_card(name), "id", None) == "openai-community/gpt2"
    found = find_card("meta-llama/meta-llama-3.1-8b-instruct")
    assert getattr(found, "id", None) == "meta-llama/Llama-3.1-8B-Instruct"
    assert find_card("no/such-model") is None


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("Qwen/Qwen3-8B", {"num_hidden_layers": 36, "num_key_value_heads": 8, "head_dim": 128}),
        ("deepseek-ai/DeepSeek-V2-Lite", {"num_hidden_layers": 27, "kv_lora_rank": 512}),
        ("google/gemma-3-270m", {"sliding_window": 512, "max_position_embeddings": 32768}),
        ("mistralai/Mistral-7B-v0.3", {"sliding_window": None, "vocab_size": 32768}),
        ("openai/gpt-oss-20b", {"sliding_window": 128, "num_local_experts": 32}),
    ],
)
def test_figures_that_everybody_knows(name: str, figures: dict[str, Json]) -> None:
    found = find_card(name)
    assert found is not None
    assert isinstance(found.config, Mapping)
    assert {key: found.config[key] for key in figures} == figures


def test_the_tokenizer_of_gemma_3_270m_is_known() -> None:
    found = find_card("google/gemma-3-270m")
    assert found is not None
    assert found.chat_templates == {}
    assert found.tokenizer == Tokenizer(
        special_ids={"bos": 2, "eos": 1, "unk": 3, "pad": 0}, size=262144
    )


def test_a_config_does_not_make_token_ids_certain() -> None:
    found = find_card("deepseek-ai/DeepSeek-V2-Lite")
    assert found is not None
    assert found.tokenizer == Tokenizer(
        special_ids={}, unsure_ids=frozenset({"bos", "eos"}), complete=False
    )


def test_reads_every_part() -> None:
    jsonschema.validate(_FULL, _SCHEMA)
    found = read_card(_FULL, name="x")
    assert found == Checkpoint(
        id="a/b",
        revision="c0ffee",
        origin="card",
        published=False,
        note="derived",
        config={"architectures": ["X"], "bos_token_id": 1},
        generation_config={"temperature": 1.0},
        tokenizer_config={"bos_token": "<s>"},
        chat_templates={"default": "T"},
        load_tensors=dict,
        load_tokenizer=lambda: Absent(""),
    )
    assert found.tensors == {
        "w": StoredTensor(dtype="BF16", shape=(2, 3)),
        "s": StoredTensor(dtype="F32", shape=()),
    }
    assert found.tokenizer == Tokenizer(
        special_ids={"bos": 1}, unsure_ids=frozenset({"eos"}), complete=False, size=2
    )
    assert _parts(read_card(card_of(found), name="y")) == _parts(found)


def test_what_a_card_leaves_out_is_absent() -> None:
    found = read_card({"card": 1, "id": "a/b", "published": True, "config": {}}, name="x")
    unknown = Absent("the reference card of a/b doesn't hold it")
    parts = (found.generation_config, found.tokenizer_config, found.chat_templates, found.tensors)
    assert parts == (unknown,) * 4


def test_a_folder_becomes_a_card() -> None:
    folder = read_checkpoint(MemoryTree({"config.json": b'{"architectures": ["X"]}'}), id="a/b")
    card = card_of(folder)
    jsonschema.validate(card, _SCHEMA)
    assert read_card(card, name="x").config == folder.config


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"card": 2}, UnsupportedError, "x is a reference card of version 2, this release reads 1"),
        (
            {"card": True},
            UnsupportedError,
            "x is a reference card of version True, this release reads 1",
        ),
        ({"id": None}, MalformedError, "x: id of a reference card has to be a Hub id"),
        ({"id": 1}, MalformedError, "x: id of a reference card has to be a string"),
        (
            {"published": 1},
            MalformedError,
            "x: published of a reference card has to be true or false",
        ),
        ({"config": []}, MalformedError, "x: config of a reference card has to be an object"),
        (
            {"chat_templates": {"a": "b", "c": 1}},
            MalformedError,
            "x: chat_templates of a reference card has to be an object of strings",
        ),
        (
            {"tokenizer": {"special_ids": {"bos": 1, "eos": "2"}, "complete": True}},
            MalformedError,
            "x: tokenizer.special_ids of a reference card has to be an object of token ids",
        ),
        (
            {"tokenizer": {"special_ids": {}, "complete": True, "size": -1}},
            MalformedError,
            "x: tokenizer.size of a reference card has to be a number of tokens",
        ),
        (
            {"tensors": {"a": ["F32", 1], "b": ["F32", -1]}},
            MalformedError,
            "x: tensors of a reference card has to be an object of [dtype, dimensions...]",
        ),
        (
            {"tensors": {"a": []}},
            MalformedError,
            "x: tensors of a reference card has to be an object of [dtype, dimensions...]",
        ),
    ],
)
def test_refuses_what_is_no_card(
    change: dict[str, Json], error: type[AuditError], message: str
) -> None:
    with pytest.raises(error) as caught:
        read_card({**_FULL, **change}, name="x")
    assert caught.value.message == message

"""``tokenizer.json`` becomes a value, whole, or an error."""

from __future__ import annotations

import json

import pytest

from gguf_audit.errors import LimitError, MalformedError
from gguf_audit.formats._inventory import Inventory
from gguf_audit.formats._tokenizer_files import tokenizer_files
from gguf_audit.formats._tokenizer_json import read_tokenizer_json
from gguf_audit.limits import LIMITS
from gguf_audit.sources import MemorySource, MemoryTree
from gguf_audit.subject import Absent, AddedToken, Json, TokenizerFiles, TokenizerJson


def _read(document: Json) -> TokenizerJson:
    return read_tokenizer_json(MemorySource("tokenizer.json", json.dumps(document).encode()))


def test_reads_byte_pairs() -> None:
    found = _read(
        {
            "added_tokens": [
                {"id": 4, "content": "<s>", "special": True, "normalized": False},
                {"id": 5, "content": " x", "lstrip": True, "rstrip": True, "single_word": True},
                {"id": 6, "content": "n", "normalized": True},
            ],
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {"type": "ByteLevel"},
            "post_processor": {"type": "ByteLevel"},
            "decoder": {"type": "ByteLevel"},
            "model": {
                "type": "BPE",
                "byte_fallback": True,
                "vocab": {"a": 0, "b": 1, "ab": 2, "a b": 3},
                "merges": ["a b", ["a", "b"], ["a ", "b"]],
            },
        }
    )
    assert found == TokenizerJson(
        model="BPE",
        ids={"a": 0, "b": 1, "ab": 2, "a b": 3},
        merges=("a b", "a b", ("a ", "b")),
        added=(
            AddedToken(id=4, content="<s>", special=True),
            AddedToken(id=5, content=" x", lstrip=True, rstrip=True, single_word=True),
            AddedToken(id=6, content="n", normalized=True),
        ),
        options={"byte_fallback": True},
        normalizer={"type": "NFC"},
        pre_tokenizer={"type": "ByteLevel"},
        post_processor={"type": "ByteLevel"},
        decoder={"type": "ByteLevel"},
        size=7,
    )


def test_reads_unigram() -> None:
    found = _read({"model": {"type": "Unigram", "unk_id": 1, "vocab": [["a", -1.5], ["b", 0]]}})
    assert found == TokenizerJson(
        model="Unigram", ids={"a": 0, "b": 1}, scores=(-1.5, 0.0), options={"unk_id": 1}, size=2
    )


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({}, "model"),
        ({"model": {"vocab": None}}, "model.vocab"),
        ({"model": {"vocab": {"a": -1}}}, "model.vocab"),
        ({"model": {"vocab": {"a": True}}}, "model.vocab"),
        ({"model": {"vocab": [["a", 0], ["b"]]}}, "model.vocab"),
        ({"model": {"vocab": {}, "merges": {}}}, "model.merges"),
        ({"model": {"vocab": {}, "merges": ["a b", ["a"]]}}, "model.merges"),
        ({"model": {"vocab": {}}, "added_tokens": {}}, "added_tokens"),
        ({"model": {"vocab": {}}, "added_tokens": [{"id": 1}]}, "added_tokens"),
    ],
)
def test_what_tokenizers_would_not_load_is_malformed(document: Json, key: str) -> None:
    with pytest.raises(MalformedError, match=f"^tokenizer.json: {key} has to be") as raised:
        _read(document)
    assert raised.value.where.key == key


def test_an_id_beyond_every_vocabulary_is_over_a_limit() -> None:
    with pytest.raises(LimitError, match="a token with id"):
        _read({"model": {"vocab": {"a": LIMITS.array_strings}}})


def _files(**contents: bytes) -> TokenizerFiles:
    files = {name.replace("___", "/").replace("__", "."): data for name, data in contents.items()}
    names = frozenset(name for name in files if "/" not in name)
    return tokenizer_files(MemoryTree(files), Inventory(names=names))


def test_files_are_read_when_they_are_asked_for() -> None:
    files = _files(tokenizer__json=b'{"model":{"vocab":{}}}', vocab__txt=b"a\nb\n")
    assert files.json == TokenizerJson(model="", ids={})
    assert files.json is files.json
    assert files.load_bytes() == b'{"model":{"vocab":{}}}'
    assert files.load_text("vocab.txt") == "a\nb\n"
    assert files.load_sentencepiece("tokenizer.model") == Absent("no tokenizer.model in the folder")


def test_files_of_a_folder_inside_are_found() -> None:
    files = _files(**{"1_Pooling___config__json": b'{"a": 1}'})
    assert files.load_object("1_Pooling/config.json") == {"a": 1}
    assert files.load_object("2_Dense/config.json") == Absent(
        "no 2_Dense/config.json in the folder"
    )

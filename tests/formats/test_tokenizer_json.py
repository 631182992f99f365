"""``tokenizer.json`` becomes a value, whole, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gguf_audit.checkpoint import AddedToken, Json, TokenizerFiles, TokenizerJson
from gguf_audit.errors import AuditError, LimitError, MalformedError
from gguf_audit.formats._inventory import Inventory
from gguf_audit.formats._tokenizer_files import tokenizer_files
from gguf_audit.formats._tokenizer_json import Apart, read_apart, read_tokenizer_json
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.sources import MemorySource, MemoryTree
from gguf_audit.where import Where


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
        merges=("a b", "a b", "a\u0120 b"),
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


@pytest.mark.parametrize("number", ["NaN", "1e400"])
def test_what_serde_would_not_parse_is_malformed(number: str) -> None:
    content = f'{{"model": {{"type": "BPE", "vocab": {{}}, "merges": []}}, "x": {number}}}'
    with pytest.raises(MalformedError) as caught:
        read_tokenizer_json(MemorySource("tokenizer.json", content.encode()))
    assert caught.value.message == f"tokenizer.json has the number {number!r}, which is not finite"


def test_an_id_beyond_every_vocabulary_is_over_a_limit() -> None:
    with pytest.raises(LimitError, match="a token with id"):
        _read({"model": {"vocab": {"a": LIMITS.vocabulary_tokens}}})


#: White space after a document makes it a large one, that is read in parts.
_LARGE = b" " * (1 << 20)


def _large(document: bytes) -> TokenizerJson:
    return read_tokenizer_json(MemorySource("tokenizer.json", document + _LARGE))


_TEXTS = st.text(st.sampled_from('a "\\{[,:]}\u0120\u2581\n\ud800'), max_size=4)
_PARTS = st.tuples(_TEXTS, _TEXTS).map(list)
_MODELS: st.SearchStrategy[Mapping[str, object]] = st.fixed_dictionaries(
    {
        "vocab": st.dictionaries(_TEXTS, st.integers(0, 9))
        | st.dictionaries(_TEXTS, st.sampled_from([-1, 1.0, True, None, 1 << 70, [], "1"])),
        "merges": st.lists(_TEXTS) | st.lists(_PARTS) | st.lists(_TEXTS | _PARTS) | st.none(),
    },
    optional={"type": st.just("BPE"), "unk_token": _TEXTS},
)


@settings(deadline=None)  # a loaded machine is no fault
@given(model=_MODELS, indent=st.none() | st.integers(0, 2), ascii_only=st.booleans())
def test_a_large_document_is_read_like_a_small_one(
    model: Mapping[str, object], indent: int | None, ascii_only: bool
) -> None:
    document: Mapping[str, object] = {
        "truncation": {},
        "padding": [],
        "model": model,
        "decoder": {},
    }
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "surrogatepass")
    assert _said(data + _LARGE) == _said(data)


def _said(data: bytes) -> TokenizerJson | tuple[type[AuditError], str, Where]:
    try:
        return read_tokenizer_json(MemorySource("tokenizer.json", data))
    except AuditError as error:
        return type(error), error.message, error.where


def test_a_large_document_is_read_in_parts() -> None:
    for merges in (b'["a b"]', b'[["a", "b"]]'):
        data = b'{"a": {}, "model": {"merges": %b, "vocab": {"a": 0, "\\"b": 1}}}' % merges
        found = read_apart(data, name="tokenizer.json")
        assert found == Apart(
            rest={"a": {}, "model": {"merges": None, "vocab": None}},
            ids={"a": 0, '"b': 1},
            merges=("a b",),
        )


@pytest.mark.parametrize(
    ("document", "error", "message"),
    [
        (
            b'{"model": {"vocab": {"a": 0, "b": 1, "a": 2}, "merges": []}}',
            MalformedError,
            "tokenizer.json has the key 'a' twice in one object",
        ),
        (
            rb'{"model": {"vocab": {"\\": 0, "\\": 2, "\"": 1}, "merges": []}}',
            MalformedError,
            r"tokenizer.json has the key '\\' twice in one object",
        ),
        (
            b'{"model": {"vocab": {"a": 0}, "merges": [], "vocab": {"a": 0}}}',
            MalformedError,
            "tokenizer.json has the key 'vocab' twice in one object",
        ),
        (
            b'{"model": {}, "model": {"vocab": {"a": 0}, "merges": []}}',
            MalformedError,
            "tokenizer.json has the key 'model' twice in one object",
        ),
        (
            b'{"added_tokens": [{"a": 1, "a": 2}], "model": {"vocab": {"a": 0}, "merges": []}}',
            MalformedError,
            "tokenizer.json has the key 'a' twice in one object",
        ),
        (
            b'{"model": {"vocab": {"a": 0}, "merges": [["a", "\xff"]]}}',
            MalformedError,
            "tokenizer.json is no UTF-8 at byte 48: invalid start byte",
        ),
        (
            b'{"model": {"vocab": {"a": 0}, "merges": [["a", "b"],\nx]}}',
            MalformedError,
            "tokenizer.json is no JSON at line 2, column 1: Expecting value",
        ),
        (
            b'{"model": {"vocab": {"a": NaN}, "merges": []}}',
            MalformedError,
            "tokenizer.json has the number 'NaN', which is not finite",
        ),
        (
            b'{"model": {"vocab": {"a": 0}, "merges": [' + b"[" * 100_000,
            LimitError,
            "tokenizer.json is nested 100003 deep, more than 64 is not read",
        ),
        (
            b'{"model": {"vocab": {"a": 0}, "merges": ['
            + b'"a b",' * LIMITS.json_values
            + b'""]}}',
            LimitError,
            "tokenizer.json has about 2500005 values, more than 2500000 are not read",
        ),
        (
            b'{"model": {"vocab": {"a": ' + b"1" * 100_000 + b'}, "merges": []}}',
            LimitError,
            "tokenizer.json has an integer of 100000 digits, more than 32 are not read",
        ),
    ],
)
def test_what_is_wrong_with_a_large_document_is_said(
    document: bytes, error: type[AuditError], message: str
) -> None:
    with pytest.raises(error) as raised:
        _large(document)
    assert raised.value.message == message


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

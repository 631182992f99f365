"""A reference's tokenizer is run in a child on texts of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gguf_audit.checkpoint import AddedToken, Json, TokenizerFiles, TokenizerJson
from gguf_audit.errors import LimitError, ReferenceUnavailableError
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.probes import tokenizer
from gguf_audit.probes.llama_cpp import LIBRARY_VARIABLE
from gguf_audit.probes.tokenizer import compare, encode, names_by_ids
from gguf_audit.where import Where

MISSING = Absent("not at hand")
ADDED: Json = {
    "id": 3,
    "content": "<x>",
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": False,
    "special": True,
}
DOCUMENT: dict[str, Json] = {
    "version": "1.0",
    "truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0},
    "padding": None,
    "added_tokens": [ADDED],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<x>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<x>": {"id": "<x>", "ids": [3], "tokens": ["<x>"]}},
    },
    "decoder": None,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
}


def files(document: bytes | Absent) -> TokenizerFiles:
    json = TokenizerJson(
        model="BPE", ids={}, added=(AddedToken(id=3, content="<x>", special=True),)
    )
    return TokenizerFiles(
        names=frozenset(),
        load_json=lambda: json,
        load_bytes=lambda: document,
        load_sentencepiece=lambda _: MISSING,
        load_object=lambda _: MISSING,
        load_text=lambda _: MISSING,
    )


def test_ids_of_every_text_with_nothing_around_it() -> None:
    found = encode(json.dumps(DOCUMENT).encode(), ("ab", "ba<x>a", ""))
    assert not isinstance(found, Absent)
    # Whole, though the file says that a text is one token long.
    assert found.ids == ((2,), (1, 0, 3, 0), ())
    assert found.names == {0: "a", 1: "b", 2: "ab", 3: "<x>"}
    whole, bare = found.checked
    assert (whole[0], whole[1:]) == (3, bare)


def test_a_tokenizer_that_the_converter_does_not_know_has_no_name() -> None:
    assert names_by_ids(files(json.dumps(DOCUMENT).encode())) == ()
    assert names_by_ids(files(MISSING)) == MISSING


@pytest.mark.parametrize("document", [b"", b"{}", b'{"model": {"type": "BPE"}}', b"\xff" * 99])
def test_what_is_no_tokenizer_says_why(document: bytes) -> None:
    for _ in range(2):  # Told each time, and found out once.
        with pytest.raises(ReferenceUnavailableError) as error:
            names_by_ids(files(document))
        assert error.value.message.startswith(
            "tokenizers can't run the reference's tokenizer.json: "
        )
        assert error.value.where == Where(file="tokenizer.json")


def test_one_that_needs_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "LIMITS", LIMITS._replace(tokenizer_memory_bytes=1 << 27))
    vocabulary: Json = {f"token {number}": number for number in range(400_000)}
    model: Json = {"type": "BPE", "vocab": vocabulary, "merges": []}
    large: dict[str, Json] = {**DOCUMENT, "model": model}
    with pytest.raises(LimitError, match=r"^the process that runs the reference's tokenizer\.json"):
        names_by_ids(files(json.dumps(large).encode()))


def test_a_comparison_needs_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = json.dumps(DOCUMENT).encode()
    monkeypatch.setenv(LIBRARY_VARIABLE, str(tmp_path / "none.so"))
    found = compare(files(document), tmp_path / "model.gguf")
    assert isinstance(found, Absent)
    assert found.reason.startswith(f"{LIBRARY_VARIABLE} names no file: ")
    (tmp_path / "empty.so").write_bytes(b"")
    monkeypatch.setenv(LIBRARY_VARIABLE, str(tmp_path / "empty.so"))
    assert compare(files(MISSING), tmp_path / "model.gguf") == MISSING
    found = compare(files(document), tmp_path / "model.gguf")
    assert isinstance(found, Absent)
    assert "can't be asked" in found.reason

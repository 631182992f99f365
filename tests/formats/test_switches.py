"""Switches are those of gguf-py: of the release that pip has, and of the one in the tree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from gguf.vocab import SpecialVocab

from gguf_audit.checkpoint import Json, TokenizerJson
from gguf_audit.formats._switches import switches_of
from gguf_audit.parts import Absent

BYTE_LEVEL: Json = {"type": "ByteLevel"}
A: Json = {"Sequence": {"id": "A"}}
B: Json = {"Sequence": {"id": "B"}}


def _special(token: str) -> Json:
    return {"SpecialToken": {"id": token}}


def _template(single: list[Json], pair: list[Json]) -> Json:
    return {"type": "TemplateProcessing", "single": single, "pair": pair}


BOS = _template([_special("<s>"), A], [_special("<s>"), A, _special("<s>"), B])
BOTH = _template(
    [_special("<s>"), A, _special("</s>")],
    [_special("<s>"), A, _special("</s>"), _special("</s>"), B, _special("</s>")],
)
EOS = _template([A, _special("</s>")], [A, _special("</s>"), B, _special("</s>")])
SEP = _template([_special("<s>"), A], [A, _special("</s>"), B])
ROBERTA: Json = {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}


def _sequence(*parts: Json) -> Json:
    return {"type": "Sequence", "processors": list(parts)}


def _switches(
    processor: Json, settings: Mapping[str, Json] | None
) -> tuple[tuple[bool | None, ...], ...]:
    document = TokenizerJson(model="BPE", ids={}, post_processor=processor)
    given = Absent("none") if settings is None else settings
    found = switches_of(document, given)
    return tuple(found[f"add_{name}_token"] for name in ("bos", "eos", "sep"))


NAMED: dict[str, Json] = {"bos_token": "<s>", "eos_token": "</s>"}
#: tokenizers adds nothing then, whatever llama.cpp does without a key.
LEFT = (None, False)
NOTHING = (LEFT, LEFT, (None,))


@pytest.mark.parametrize(
    ("processor", "settings", "expected"),
    [
        (None, None, NOTHING),
        (None, {"add_bos_token": True, "add_eos_token": False}, ((True,), (False,), (None,))),
        # Only the newer release takes a byte-level post-processor for "add nothing".
        (BYTE_LEVEL, None, ((False, None), (False, None), (None,))),
        (BYTE_LEVEL, {"add_bos_token": True}, ((False, True), (False, None), (None,))),
        (_sequence(BYTE_LEVEL, BOS), NAMED, ((True,), (False, None), (False,))),
        (BOTH, NAMED, ((True,), (True,), (True,))),
        (BOTH, None, ((True,), (True,), (True,))),
        (EOS, {"eos_token": "<|end|>"}, (LEFT, (True,), (False,))),
        (SEP, NAMED, ((True,), LEFT, (True,))),
        (ROBERTA, {}, ((True,), (True,), (True,))),
        # A token given as an object is nobody's first token to the older release.
        (BOS, {"bos_token": {"content": "<s>"}}, ((True, False), LEFT, (False,))),
        (BOS, {**NAMED, "add_bos_token": False}, ((True, False), LEFT, (False,))),
    ],
)
def test_what_either_release_writes_is_right(
    processor: Json,
    settings: Mapping[str, Json] | None,
    expected: object,
    tmp_path: Path,
) -> None:
    assert _switches(processor, settings) == expected
    document: Json = {"model": {"vocab": {}}, "added_tokens": [], "post_processor": processor}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    installed = SpecialVocab(tmp_path).add_special_token
    for name, allowed in zip(("bos", "eos", "sep"), _switches(processor, settings), strict=True):
        assert installed.get(name) in allowed


@pytest.mark.parametrize(
    ("normalizer", "expected"),
    [
        (None, ((None,), (None,))),
        ({"type": "Lowercase"}, ((True,), (None,))),
        (
            {"type": "BertNormalizer", "lowercase": False, "strip_accents": None},
            ((False,), (None,)),
        ),
        (
            {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
            ((None,), (True, None)),
        ),
    ],
)
def test_what_is_normalized(normalizer: Json, expected: object) -> None:
    found = switches_of(TokenizerJson(model="", ids={}, normalizer=normalizer), Absent("none"))
    assert (found["normalizer.lowercase"], found["normalizer.strip_accents"]) == expected

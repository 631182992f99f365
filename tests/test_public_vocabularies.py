"""Faults of vocabularies that people have published, made again in a small way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gguf_audit import open_gguf
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.gguf import Scalar, ValueType
from gguf_audit.mandate import Mandate
from gguf_audit.testing import FieldValue
from gguf_audit_rules import load
from injected_tokenizer import RULES
from public_reports import rows
from vocabulary_pairs import ROWS, convert, write_checkpoint

PREFIX = "tokenizer.ggml."
LOST = None


def _findings(
    folder: Path,
    name: str,
    changes: Mapping[str, FieldValue | None],
    *,
    against: bool = True,
    settings: Mapping[str, Json] | None = None,
) -> list[str]:
    """Return code and level of what is told of a right conversion that is changed.

    ``settings`` are others in the checkpoint's ``tokenizer_config.json``.
    """
    checkpoint = write_checkpoint(folder / "hf", name)
    if settings is not None:
        _change(checkpoint / "tokenizer_config.json", settings)
    kept = {f"{PREFIX}{key}": value for key, value in changes.items() if value is not None}
    lost = frozenset(f"{PREFIX}{key}" for key, value in changes.items() if value is None)
    file = convert(checkpoint, folder / "file.gguf", kept, without=lost)
    reference = str(checkpoint) if against else None
    [report] = audit_targets([str(file)], Mandate(against=reference, rules=RULES)).subjects
    assert [skip.reason for skip in report.skips if skip.kind in ("crashed", "limit")] == []
    return [f"{finding.rule} {finding.severity.value}" for finding in report.findings]


def _change(document: Path, changes: Mapping[str, Json]) -> None:
    known = json.loads(document.read_text("utf-8"))
    document.write_text(json.dumps({**known, **changes}), "utf-8")


def _list(folder: Path, name: str, key: str) -> list[Scalar]:
    """Return a list of a right conversion, to be changed."""
    right = convert(write_checkpoint(folder / "right", name), folder / "right.gguf")
    found = open_gguf(right).array(PREFIX + key)
    assert found is not None
    return [*found.items()]


def _texts(items: list[Scalar]) -> FieldValue:
    return (ValueType.STRING, items)


def _types(items: list[Scalar]) -> FieldValue:
    return (ValueType.INT32, items)


@rows("tok-002")
def test_no_begin_token_is_asked_for_and_one_is_added(tmp_path: Path) -> None:
    # A SentencePiece file without the switch begins with bos, whatever the reference says.
    lost: dict[str, FieldValue | None] = {"add_bos_token": LOST}
    without: dict[str, Json] = {"add_bos_token": False}
    assert _findings(tmp_path, "pieces", lost, settings=without) == ["TOK019 error"]
    assert _findings(tmp_path, "pieces", {}, settings=without) == []


def test_a_begin_token_is_asked_for_and_none_is_added(tmp_path: Path) -> None:
    assert _findings(tmp_path, "pieces", {"add_bos_token": False}) == ["TOK019 error"]
    assert _findings(tmp_path, "pieces", {"add_bos_token": LOST}) == []


@rows("tok-008")
def test_turn_markers_are_stored_as_normal_tokens(tmp_path: Path) -> None:
    types = _list(tmp_path, "pieces", "token_type")
    types[27] = 1
    assert _findings(tmp_path, "pieces", {"token_type": _types(types)}) == ["TOK016 error"]


@rows("tok-009")
def test_user_defined_spaces_have_the_wrong_glyph(tmp_path: Path) -> None:
    texts = _list(tmp_path, "pieces", "tokens")
    assert texts[28] == "<tool> "
    texts[28] = "<tool>\u2581"
    assert _findings(tmp_path, "pieces", {"tokens": _texts(texts)}) == ["TOK011 error"]


@rows("tok-011")
def test_eos_is_not_the_token_that_the_tokenizer_names(tmp_path: Path) -> None:
    changes: dict[str, FieldValue | None] = {"eos_token_id": (ValueType.UINT32, 41)}
    assert _findings(tmp_path, "byte pairs", changes) == ["TOK004 error"]


@rows("tok-016 tok-017")
def test_merges_are_skipped_by_an_old_gguf_py(tmp_path: Path) -> None:
    assert _findings(tmp_path, "byte pairs", {"merges": LOST}) == ["TOK008 error"]


@rows("tok-019")
def test_byte_pairs_are_called_sentencepiece(tmp_path: Path) -> None:
    changes: dict[str, FieldValue | None] = {
        "model": "llama",
        "scores": (ValueType.FLOAT32, [0.0] * ROWS),
    }
    assert _findings(tmp_path, "byte pairs", changes) == ["TOK010 error"]
    assert _findings(tmp_path, "byte pairs", changes, against=False) == ["TOK009 error"]


@rows("tok-035")
def test_pieces_went_through_the_path_of_byte_pairs(tmp_path: Path) -> None:
    changes: dict[str, FieldValue | None] = {
        "model": "gpt2",
        "pre": "default",
        "scores": LOST,
        "merges": (ValueType.STRING, ["\u2581 a"]),
    }
    found = _findings(tmp_path, "pieces", changes, against=False)
    assert "TOK009 error" in found


@rows("tok-025")
def test_added_tokens_are_padded_over(tmp_path: Path) -> None:
    texts = _list(tmp_path, "byte pairs", "tokens")
    for id_ in range(41, 45):
        texts[id_] = f"[PAD{id_}]"
    found = _findings(tmp_path, "byte pairs", {"tokens": _texts(texts)})
    assert found == ["TOK011 error"]


@rows("tok-027")
def test_padding_has_one_name_for_all(tmp_path: Path) -> None:
    texts = _list(tmp_path, "byte pairs", "tokens")
    texts[-2:] = ["<|pad|>", "<|pad|>"]
    found = _findings(tmp_path, "byte pairs", {"tokens": _texts(texts)}, against=False)
    assert found == ["TOK012 error"]


@rows("tok-031")
@pytest.mark.parametrize("padding", ["[PAD{}]", "<unk{}>", "<dummy{:05}>"])
def test_silent_for_padding_up_to_the_embedding(tmp_path: Path, padding: str) -> None:
    texts = _list(tmp_path, "byte pairs", "tokens")
    texts[45:] = [padding.format(id_) for id_ in range(45, ROWS)]
    assert _findings(tmp_path, "byte pairs", {"tokens": _texts(texts)}) == []


def test_silent_for_byte_pairs_without_scores_and_types_that_are_all_normal(
    tmp_path: Path,
) -> None:
    found = _findings(tmp_path, "byte pairs", {"token_type": LOST}, against=False)
    assert found == []


#: Tokens of GLM's, the end of a document first.
GLM = ["<|endoftext|>", "[gMASK]", "<sop>", "<|user|>", "<|observation|>"]


@rows("tok-021")
def test_a_preamble_s_first_token_is_not_the_begin_token(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "hf", "byte pairs")
    _change(checkpoint / "config.json", {"architectures": ["Glm4MoeLiteForCausalLM"]})
    added: list[Json] = [
        {"id": 41 + id_, "content": text, "special": True} for id_, text in enumerate(GLM)
    ]
    _change(checkpoint / "tokenizer.json", {"added_tokens": added, "post_processor": None})
    (checkpoint / "tokenizer_config.json").write_text(json.dumps({"eos_token": GLM[0]}), "utf-8")
    for lost, expected in ((frozenset[str](), []), ({f"{PREFIX}bos_token_id"}, ["TOK004 error"])):
        file = convert(checkpoint, tmp_path / "file.gguf", without=frozenset(lost))
        [report] = audit_targets(
            [str(file)], Mandate(against=str(checkpoint), rules=RULES)
        ).subjects
        found = [f"{finding.rule} {finding.severity.value}" for finding in report.findings]
        assert found == expected


@rows("tok-030")
def test_a_padding_token_of_minus_one(tmp_path: Path) -> None:
    # It is llama.cpp's "none", and it has none of its own for what is padded with.
    none: FieldValue = (ValueType.UINT32, (1 << 32) - 1)
    assert _findings(tmp_path, "byte pairs", {"padding_token_id": none}) == []
    alone = _findings(tmp_path, "byte pairs", {"eos_token_id": none}, against=False)
    assert alone == ["TOK003 error"]
    assert _findings(tmp_path, "byte pairs", {"eos_token_id": none}) == ["TOK004 error"]
    beyond: FieldValue = (ValueType.UINT32, ROWS)
    assert _findings(tmp_path, "byte pairs", {"padding_token_id": beyond}) == ["TOK003 error"]


def _pooling(folder: Path, name: str, architecture: str, stored: int | None, mode: str) -> bool:
    """Tell whether the pooling is told of an embedder that says so."""
    checkpoint = write_checkpoint(folder / "checkpoint", name)
    if architecture == "qwen3":
        _change(
            checkpoint / "config.json",
            {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"},
        )
    modules = '[{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]'
    (checkpoint / "modules.json").write_text(modules, "utf-8")
    (checkpoint / "1_Pooling").mkdir()
    config = json.dumps({"pooling_mode": mode})
    (checkpoint / "1_Pooling" / "config.json").write_text(config, "utf-8")
    key = f"{architecture}.pooling_type"
    keys: dict[str, FieldValue] = {"general.architecture": architecture}
    if stored is not None:
        keys[key] = stored
    file = convert(checkpoint, folder / "model.gguf", keys)
    rules = {rule.id: rule for rule in load() if rule.id == "ARCH006"}
    [report] = audit_targets([str(file)], Mandate(against=str(checkpoint), rules=rules)).subjects
    return key in [found.where.key for found in report.findings]


@rows("emb-007")
@pytest.mark.parametrize(("stored", "told"), [(None, True), (3, True), (1, False)])
def test_an_embedder_s_pooling(stored: int | None, told: bool, tmp_path: Path) -> None:
    assert _pooling(tmp_path, "word pieces", "bert", stored, "mean") is told


@rows("emb-004 emb-008")
@pytest.mark.parametrize(("stored", "told"), [(None, True), (1, True), (3, False)])
def test_a_decoder_s_pooling(stored: int | None, told: bool, tmp_path: Path) -> None:
    assert _pooling(tmp_path, "byte pairs", "qwen3", stored, "lasttoken") is told

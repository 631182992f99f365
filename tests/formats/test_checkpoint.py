"""References come from folders, from a config alone, from cards and from ids."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from gguf_audit.checkpoint import Checkpoint, Json, StoredTensor, Tokenizer, non_finite
from gguf_audit.errors import (
    AuditError,
    LimitError,
    MalformedError,
    ReferenceUnavailableError,
    SourceError,
    UnsupportedError,
)
from gguf_audit.formats.checkpoint import read_checkpoint
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.reference import open_checkpoint
from gguf_audit.sources import MemorySource, MemoryTree

_CONFIG: dict[str, Json] = {"architectures": ["LlamaForCausalLM"], "bos_token_id": 1}
_TOKENIZER: Json = {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1, "content": "<s>"}]}


def _tree(**files: Json | bytes) -> MemoryTree:
    """Name files with ``__`` for a dot and ``___`` for a slash."""
    return MemoryTree(
        {
            name.replace("___", "/").replace("__", "."): content
            if isinstance(content, bytes)
            else json.dumps(content).encode()
            for name, content in files.items()
        },
        identity="here",
    )


def _templates(**files: Json | bytes) -> Mapping[str, str] | Absent:
    tree = _tree(config__json=_CONFIG, tokenizer__json=_TOKENIZER, **files)
    return read_checkpoint(tree, id="x").chat_templates


def test_reads_a_whole_folder() -> None:
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    tree = _tree(
        config__json=_CONFIG,
        generation_config__json={"temperature": 0.6},
        tokenizer_config__json={"bos_token": "<s>", "chat_template": "T"},
        tokenizer__json=_TOKENIZER,
        model__safetensors=struct.pack("<Q", len(header)) + header + bytes(4),
    )
    found = read_checkpoint(tree, id="a/b", revision="c0ffee", origin="hub")
    assert found == Checkpoint(
        id="a/b",
        revision="c0ffee",
        origin="hub",
        config=_CONFIG,
        generation_config={"temperature": 0.6},
        tokenizer_config={"bos_token": "<s>", "chat_template": "T"},
        chat_templates={"default": "T"},
        tokenizer_files=found.tokenizer_files,
        load_tensors=dict,
        load_tokenizer=lambda: Absent(""),
    )
    assert found.tensors == {"w": StoredTensor(dtype="F32", shape=(1,))}
    assert found.tokenizer == Tokenizer(special_ids={"bos": 1}, size=2)


def test_what_is_not_there_is_absent_with_a_reason() -> None:
    found = read_checkpoint(_tree(config__json=_CONFIG), id="x")
    assert found.generation_config == Absent("no generation_config.json in the folder")
    assert found.tokenizer_config == Absent("no tokenizer_config.json in the folder")
    assert found.chat_templates == Absent("no tokenizer in the folder")
    assert found.tensors == Absent("no model.safetensors in the folder")
    assert found.tokenizer == Tokenizer(
        special_ids={}, unsure_ids=frozenset({"bos"}), complete=False
    )


def test_headers_and_tokenizer_are_read_once_and_late() -> None:
    opened: list[str] = []

    class Watched(MemoryTree):
        def open(self, name: str) -> MemorySource:
            opened.append(name)
            return super().open(name)

    tree = Watched(
        {
            "config.json": b"{}",
            "model.safetensors": struct.pack("<Q", 2) + b"{}",
            "tokenizer.json": json.dumps(_TOKENIZER).encode(),
        }
    )
    found = read_checkpoint(tree, id="x")
    assert opened == ["config.json"]
    assert (found.tensors, found.tokenizer) == (found.tensors, found.tokenizer)
    assert opened == ["config.json", "model.safetensors", "tokenizer.json"]


def test_a_fault_in_a_late_part_is_raised_when_it_is_asked_for() -> None:
    found = read_checkpoint(
        _tree(config__json=_CONFIG, model__safetensors=b"", tokenizer__json=[]), id="x"
    )
    with pytest.raises(MalformedError, match=r"^model.safetensors: 0 bytes"):
        _ = found.tensors
    with pytest.raises(MalformedError, match=r"^tokenizer.json holds a list"):
        _ = found.tokenizer


@pytest.mark.parametrize(
    ("files", "templates"),
    [
        ({}, {}),
        ({"chat_template__jinja": b"J"}, {}),
        ({"tokenizer_config__json": {}, "chat_template__jinja": b"J"}, {}),
        (
            {"tokenizer_config__json": {"chat_template": "T"}, "chat_template__jinja": b"J"},
            {"default": "T"},
        ),
        ({"tokenizer_config__json": {"chat_template": None}, "chat_template__jinja": b"J"}, {}),
        ({"tokenizer_config__json": {"chat_template": 1}, "chat_template__jinja": b"J"}, {}),
        (
            {"tokenizer_config__json": {"a": 1}, "chat_template__jinja": "é".encode()},
            {"default": "é"},
        ),
        (
            {
                "tokenizer_config__json": {"a": 1},
                "chat_template__jinja": b"J",
                "chat_template__json": {"chat_template": "N"},
                "additional_chat_templates___tool-use__jinja": b"A",
                "additional_chat_templates___notes__txt": b"B",
            },
            {"default": "J", "tool_use": "A"},
        ),
        (
            {
                "tokenizer_config__json": {"a": 1},
                "additional_chat_templates___rag__jinja": b"A",
                "chat_template__json": {"chat_template": "N"},
            },
            {"default": "N"},
        ),
        (
            {
                "tokenizer_config__json": {
                    "chat_template": [
                        {"name": "rag", "template": "R"},
                        {"name": "default", "template": "D"},
                        {"name": "../../evil", "template": "E"},
                        {"name": "", "template": "F"},
                        {"name": "none"},
                        {"template": "G"},
                        1,
                    ]
                }
            },
            {"default": "D", "rag": "R", "______evil": "E"},
        ),
    ],
)
def test_templates_come_in_the_converters_order(
    files: dict[str, Json | bytes], templates: dict[str, str]
) -> None:
    assert _templates(**files) == templates


def test_templates_together_are_no_longer_than_one_may_be() -> None:
    long = b" " * (LIMITS.string_bytes // 3 + 1)
    files: dict[str, Json | bytes] = {
        "chat_template__jinja": b"J",
        **{f"additional_chat_templates___{name}__jinja": long for name in "abc"},
    }
    found = read_checkpoint(_tree(config__json=_CONFIG, **files), id="x")
    says = "with additional_chat_templates/c.jinja the chat templates have more than 67108864 bytes"
    with pytest.raises(LimitError, match=says):
        _ = found.template_files
    with pytest.raises(LimitError, match=says):
        _templates(tokenizer_config__json={"a": 1}, **files)


def test_a_list_keeps_its_default_first() -> None:
    entries: Json = [{"name": "a", "template": "A"}, {"name": "default", "template": "D"}]
    found = _templates(tokenizer_config__json={"chat_template": entries})
    assert not isinstance(found, Absent)
    assert list(found) == ["default", "a"]


def test_rwkv_has_a_template_that_no_checkpoint_holds() -> None:
    tree = _tree(
        config__json={"architectures": ["Rwkv7ForCausalLM"]}, rwkv_vocab_v20230424__txt=b""
    )
    assert read_checkpoint(tree, id="x").chat_templates == Absent(
        "the converter has a template of its own for RWKV"
    )


def test_says_where_numbers_are_not_finite() -> None:
    config = b'{"time_step_limit": [0.0, Infinity], "text_config": {"rope_theta": NaN, "n": 1e400, "m": 1.0}}'
    found = read_checkpoint(_tree(config__json=config), id="x")
    assert isinstance(found.config, dict)
    assert [(place, str(value)) for place, value in non_finite(found.config)] == [
        ("time_step_limit[1]", "inf"),
        ("text_config.rope_theta", "nan"),
        ("text_config.n", "inf"),
    ]
    assert found.config["time_step_limit"] == [0.0, math.inf]


@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        (_tree(), ReferenceUnavailableError, r"^here has no config.json: a reference is a folder"),
        (
            _tree(params__json={}),
            ReferenceUnavailableError,
            r"params.json alone is Mistral's own format",
        ),
        (
            _tree(config__json=[]),
            MalformedError,
            r"^config.json holds a list, expected a JSON object$",
        ),
        (
            _tree(config__json=None),
            MalformedError,
            r"^config.json holds null, expected a JSON object$",
        ),
        (
            _tree(config__json=b'{"a": "\xff"}'),
            MalformedError,
            r"^config.json is no UTF-8 at byte 7",
        ),
        (_tree(config__json=b""), MalformedError, r"^config.json is no JSON at line 1, column 1"),
        (_tree(config__json=b'{"a":' * 99), LimitError, r"^config.json is nested 99 deep"),
        (
            _tree(config__json={}, generation_config__json=[]),
            MalformedError,
            r"^generation_config.json holds a list",
        ),
        (
            _tree(config__json={}, tokenizer_config__json=b"{"),
            MalformedError,
            r"^tokenizer_config.json is no JSON",
        ),
    ],
)
def test_a_folder_that_is_no_checkpoint(
    tree: MemoryTree, error: type[AuditError], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_checkpoint(tree, id="x")


@pytest.mark.parametrize(
    ("names", "note"),
    [
        ([], ""),
        (["modeling_a.py"], "its modeling_a.py is never run"),
        (["b.py", "a.py", "c.py"], "its a.py (and 2 more) is never run"),
    ],
)
def test_code_in_a_folder_is_told(names: list[str], note: str) -> None:
    contents = {"config.json": b"{}", **dict.fromkeys(names, b"raise SystemExit")}
    assert read_checkpoint(MemoryTree(contents), id="x").note == note


def test_opens_a_folder_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(_CONFIG))
    found = open_checkpoint(str(tmp_path))
    assert (found.id, found.origin, found.config) == (str(tmp_path), "folder", _CONFIG)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("model.safetensors", struct.pack("<Q", 2) + b"{}", "is a safetensors file"),
        ("model.bin", b"PK\x03\x04", "is a zip archive"),
        ("README.md", b"---\nlicense: mit\n---\n", "is no JSON object"),
        ("empty.json", b"", "is no JSON object"),
        ("tokenizer.json", b'{"model": {}}', "has neither architectures nor model_type"),
        ("big.json", b"{" + b" " * (16 << 20), "is larger than any config.json"),
    ],
)
def test_another_file_of_a_checkpoint_is_no_reference(
    tmp_path: Path, name: str, data: bytes, why: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UnsupportedError) as caught:
        open_checkpoint(str(path))
    assert caught.value.message == (
        f"{path} {why}: give the folder of the checkpoint, its config.json, a reference card or"
        " another GGUF"
    )


def test_a_config_alone_knows_no_more_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(_CONFIG))
    found = open_checkpoint(str(path))
    unknown = Absent(f"only {path} was given, not its folder")
    assert (found.origin, found.config, found.published) == ("config", _CONFIG, True)
    assert found.generation_config == unknown
    assert found.tokenizer_config == unknown
    assert found.chat_templates == unknown
    assert found.tensors == unknown
    assert found.tokenizer == Tokenizer(
        special_ids={}, unsure_ids=frozenset({"bos"}), complete=False
    )


def test_opens_a_built_in_card_by_its_id() -> None:
    for name in ("google/gemma-3-270m", "GOOGLE/Gemma-3-270M", "hf://google/gemma-3-270m"):
        found = open_checkpoint(name)
        assert (found.id, found.origin, found.chat_templates) == ("google/gemma-3-270m", "card", {})


def test_a_card_vouches_for_no_other_revision() -> None:
    with pytest.raises(
        ReferenceUnavailableError, match=r"doesn't know revision abc; give a folder"
    ):
        open_checkpoint("google/gemma-3-270m@abc")


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("gemma-3-270m", "google/gemma-3-270m"),
        ("unsloth/gemma-3-270m", "google/gemma-3-270m"),
        ("deepseek-ai/deepseek-v2-light", "deepseek-ai/DeepSeek-V2-Lite"),
    ],
)
def test_names_what_comes_close(name: str, close: str) -> None:
    cache = "not in the local Hub cache, " if "/" in name else ""
    with pytest.raises(ReferenceUnavailableError) as caught:
        open_checkpoint(name)
    assert caught.value.message.startswith(
        f"{name}: no such file or folder, {cache}and no built-in card of that name;"
        " give a checkpoint folder, its config.json, a reference card or another GGUF; did you mean "
    )
    assert close in caught.value.message


def test_no_name_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert open_checkpoint(".").config == {}
    with pytest.raises(ReferenceUnavailableError):
        open_checkpoint("")


@pytest.mark.parametrize("name", ["no/such/folder", "x" * 300, "a\0b", "ok/\ud800"])
def test_what_is_nothing_is_an_audit_error(name: str) -> None:
    with pytest.raises(AuditError):
        open_checkpoint(name)


def test_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    os.mkfifo(path)
    with pytest.raises(SourceError, match="a named pipe"):
        open_checkpoint(str(path))

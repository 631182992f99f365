"""A reference with a document that can't be read is no audit, whichever it is and whatever is there."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_subjects import ALL, CONFIG, KEYS, TENSORS
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.errors import AuditError
from gguf_audit.mandate import Mandate
from gguf_audit.reference import open_checkpoint
from gguf_audit.testing import FieldValue, write_gguf
from gguf_audit.verdict import Report

TOKENS = ["a", "b", "ab", "c", "d", "e", "f", "g"]
VOCABULARY: dict[str, FieldValue] = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [1] * len(TOKENS),
    "tokenizer.ggml.merges": ["a b"],
}
BYTES: Json = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
TOKENIZER: dict[str, Json] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": BYTES,
    "post_processor": None,
    "decoder": None,
    "model": {
        "type": "BPE",
        "vocab": {token: id_ for id_, token in enumerate(TOKENS)},
        "merges": ["a b"],
    },
}
#: All that are read for a model of this class.
DOCUMENTS = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "added_tokens.json",
    "special_tokens_map.json",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates/tool.jinja",
    "processor_config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "adapter_config.json",
)


def folder(place: Path) -> None:
    place.mkdir()


def dangling(place: Path) -> None:
    place.symlink_to("nowhere")


def circle(place: Path) -> None:
    place.symlink_to(place.name)


def leading_out(place: Path) -> None:
    place.symlink_to("/etc/hostname")


def pipe(place: Path) -> None:
    os.mkfifo(place)


def unix_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place.name)


def not_utf_8(place: Path) -> None:
    place.write_bytes(b"\xff\xfe\x00")


KINDS = (folder, dangling, circle, leading_out, pipe, unix_socket, not_utf_8)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "model.gguf", {**KEYS, **VOCABULARY}, TENSORS)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    made = tmp_path / "checkpoint"
    (made / "additional_chat_templates").mkdir(parents=True)
    documents = {"config.json": CONFIG, "tokenizer.json": TOKENIZER, "tokenizer_config.json": {}}
    for name, document in documents.items():
        (made / name).write_text(json.dumps(document), "utf-8")
    return made


def audited(model: Path, checkpoint: Path) -> Report:
    return audit_targets([str(model)], Mandate(against=str(checkpoint), rules=ALL))


def test_nothing_is_wrong_with_the_reference_itself(model: Path, checkpoint: Path) -> None:
    report = audited(model, checkpoint)
    assert (report.subjects[0].errors, report.exit_code()) == ((), 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_is_there_and_cannot_be_read_is_an_error(
    model: Path,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: Callable[[Path], None],
) -> None:
    place = checkpoint / name
    place.unlink(missing_ok=True)
    monkeypatch.chdir(place.parent)
    kind(place)
    report = audited(model, checkpoint)
    [subject] = report.subjects
    assert report.exit_code() == 3
    assert any(name in error.message for error in subject.errors), subject.errors


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_nobody_may_read_is_an_error(
    model: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    place = str(checkpoint / name)
    Path(place).touch()
    opened = os.open

    def refusing(path: str, flags: int) -> int:
        if path == place:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, flags)

    monkeypatch.setattr(os, "open", refusing)
    report = audited(model, checkpoint)
    assert report.exit_code() == 3
    denied = f"can't read {name}: Permission denied"
    assert any(denied in error.message for error in report.subjects[0].errors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("modules.json", "load_pooling"),
        ("1_Pooling/config.json", "load_pooling"),
        ("preprocessor_config.json", "load_preprocessor"),
        ("adapter_model.safetensors", "load_adapter"),
    ],
)
def test_documents_of_other_models_are_no_other(
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    part: str,
    kind: Callable[[Path], None],
) -> None:
    pooling = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    (checkpoint / "modules.json").write_text(json.dumps(pooling), "utf-8")
    (checkpoint / "adapter_config.json").write_text("{}", "utf-8")
    place = checkpoint / name
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    monkeypatch.chdir(place.parent)
    kind(place)
    found = open_checkpoint(str(checkpoint))
    with pytest.raises(AuditError) as error:
        getattr(found, part)()
    assert name in error.value.message


def test_a_tokenizer_that_cannot_be_run_is_an_error(model: Path, checkpoint: Path) -> None:
    broken = {**TOKENIZER, "pre_tokenizer": {"type": "Teleport"}}
    (checkpoint / "tokenizer.json").write_text(json.dumps(broken), "utf-8")
    report = audited(model, checkpoint)
    [error] = report.subjects[0].errors
    assert error.code == "reference"
    assert error.message.startswith("tokenizers can't run the reference's tokenizer.json: ")
    assert report.exit_code() == 3

"""Broken downloads, splits and containers that people have published, made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine_subjects import ALL
from gguf_audit.engine import audit_targets
from gguf_audit.mandate import Mandate
from gguf_audit.testing import TensorSpec, build_gguf, write_gguf, write_split_gguf
from public_faults import noted, told
from public_reports import rows
from recipes import read_recipe

KEYS = read_recipe("small-llama").fields
TENSORS = read_recipe("small-llama").tensors


def outcome(*targets: Path) -> tuple[str, list[str], int]:
    """Return the rules that fired, why something wasn't audited, and the exit code."""
    report = audit_targets([str(target) for target in targets], Mandate(rules=ALL))
    codes = [error.code for subject in report.subjects for error in subject.errors]
    return told(report), codes, report.exit_code()


@rows("spl-001 spl-002 spl-005 spl-006 spl-017")
@pytest.mark.parametrize("missing", [1, 4096, 4_000_000])
def test_a_download_that_broke_off(tmp_path: Path, missing: int) -> None:
    content = build_gguf(KEYS, TENSORS)
    file = tmp_path / "model.gguf.part1of2"
    file.write_bytes(content[: len(content) - missing])
    assert outcome(file) == ("GGUF001", [], 1)


@rows("spl-003 spl-004")
@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE html><html></html>",
        b'{"error":"Repository not found"}',
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        b"",
        b"FGUG" + build_gguf(KEYS, TENSORS)[4:],
    ],
)
def test_something_else_was_saved_as_a_model(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    rules, codes, code = outcome(file)
    assert (rules, len(codes), code) == ("", 1, 3)


@rows("spl-007 spl-008")
@pytest.mark.parametrize("content", [b"", b"GGUF", build_gguf(KEYS, TENSORS, data="none")])
def test_a_shard_was_emptied_or_overwritten(tmp_path: Path, content: bytes) -> None:
    shards = write_split_gguf(tmp_path, KEYS, TENSORS, shards=3)
    shards[1].write_bytes(content)
    rules, codes, code = outcome(shards[0])
    assert (rules, len(codes), code) == ("", 1, 3)


@rows("spl-009")
def test_a_whole_file_that_kept_a_shards_name(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "model-00001-of-00013.gguf", KEYS, TENSORS)
    report = audit_targets([str(file)], Mandate(rules=ALL))
    assert (told(report), noted(report), report.exit_code()) == ("", "PKG005", 0)


@rows("spl-018")
def test_pieces_of_a_file_that_was_cut_by_bytes(tmp_path: Path) -> None:
    content = build_gguf(KEYS, TENSORS)
    first, second = tmp_path / "model.gguf-split-a", tmp_path / "model.gguf-split-b"
    first.write_bytes(content[: len(content) // 2])
    second.write_bytes(content[len(content) // 2 :])
    assert outcome(first) == ("GGUF001", [], 1)
    assert outcome(second) == ("", ["malformed"], 3)


@rows("spl-014")
def test_a_file_for_machines_of_the_other_byte_order(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "model.gguf", KEYS, TENSORS, byte_order="big")
    assert outcome(file) == ("", [], 0)


@rows("ten-017")
def test_a_type_that_only_its_own_engine_knows(tmp_path: Path) -> None:
    tensors = [
        TensorSpec(spec.name, spec.shape, 250 if spec.name == "blk.0.ffn_up.weight" else spec.type)
        for spec in TENSORS
    ]
    file = write_gguf(tmp_path / "model.gguf", KEYS, tensors)
    assert outcome(file) == ("", [], 3)


@rows("ten-019")
def test_a_model_that_makes_images(tmp_path: Path) -> None:
    tensors = [TensorSpec("x_pad_token", (3840,))]
    file = write_gguf(tmp_path / "model.gguf", {"general.architecture": "lumina2"}, tensors)
    assert outcome(file) == ("", [], 0)


def test_shards_whose_metadata_stand_in_the_first_alone(tmp_path: Path) -> None:
    shards = write_split_gguf(tmp_path, KEYS, TENSORS, shards=3)
    assert outcome(shards[2]) == ("", [], 0)

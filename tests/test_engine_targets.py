from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine_subjects import (
    ALL,
    KEYS,
    TENSORS,
    audit,
    hit,
    rule,
    write_checkpoint,
    write_model,
)
from gguf_audit.engine import audit_targets
from gguf_audit.evidence import Model, Settings
from gguf_audit.finding import SkipKind
from gguf_audit.gguf import Gguf
from gguf_audit.mandate import Mandate
from gguf_audit.policies import Policy
from gguf_audit.rule import OnModel, Outcome
from gguf_audit.testing import FieldValue, TensorSpec, write_gguf, write_split_gguf
from gguf_audit.verdict import BytesAt, Problem, Status
from gguf_audit.where import Where


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path)


CAUSE = rule("AA001", hit("cause", "a"))


# Kinds


@pytest.mark.parametrize(
    ("keys", "tensors", "kind"),
    [
        ({"general.architecture": "llama", "general.type": "adapter"}, True, "adapter"),
        ({"general.architecture": "clip"}, True, "mmproj"),
        ({"general.architecture": "qwen2vl", "general.type": "mmproj"}, True, "mmproj"),
        ({"general.type": "imatrix"}, True, "imatrix"),
        ({"general.architecture": "imatrix"}, True, "imatrix"),
        ({"general.architecture": "controlvector"}, True, "other"),
        ({"general.name": "x"}, False, "other"),
    ],
)
def test_companions_are_judged_as_what_they_are(
    tmp_path: Path, keys: dict[str, FieldValue], tensors: bool, kind: str
) -> None:
    given = [TensorSpec("odd.tensor", (64,)), TensorSpec("last", (32,), offset=96)]
    file = write_gguf(tmp_path / "file.gguf", keys, given if tensors else [])
    subject = audit(file)
    assert subject.kind == kind
    structure = [each.rule for each in subject.findings if each.rule.startswith("GGUF")]
    assert structure == (["GGUF002"] if tensors else [])
    assert (subject.errors, subject.cache) == ((), None)
    skips: dict[str, tuple[SkipKind, str]] = {
        skip.rule: (skip.kind, skip.reason) for skip in subject.skips
    }
    if "general.name" in keys:
        reason = f"only the file structure of this kind is audited: {kind}"
        assert skips["ARCH003"] == ("no-evidence", reason)
    else:
        what = keys["general.architecture"] if kind == "other" else kind
        assert skips["ARCH003"] == ("not-applicable", f"looks at models, this is none: {what}")


@pytest.mark.parametrize(
    "keys",
    [
        {"general.architecture": "llama", "general.type": "adapter"},
        {"general.architecture": "clip"},
        {"general.architecture": "controlvector"},
        {"general.architecture": "stable-diffusion"},
        {"general.architecture": "llama"},
    ],
)
def test_values_are_looked_at_whatever_holds_them(
    tmp_path: Path, keys: dict[str, FieldValue]
) -> None:
    nan = TensorSpec("a.weight", (1,), data=b"\0\0\xc0\x7f")
    subject = audit(write_gguf(tmp_path / "file.gguf", keys, [nan]))
    assert "WT008" in [finding.rule for finding in subject.findings]


def test_values_are_looked_at_in_every_shard(tmp_path: Path) -> None:
    nan = TensorSpec("z.weight", (1,), data=b"\0\0\xc0\x7f")
    first, last = write_split_gguf(tmp_path, KEYS, [*TENSORS, nan], shards=2)
    found = audit(first, ALL["WT008"]).findings
    assert [(each.where.file, each.where.tensor) for each in found] == [(last.name, "z.weight")]


def test_a_vocabulary_needs_no_hyper_parameters(tmp_path: Path) -> None:
    keys: dict[str, FieldValue] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": ["a", "b", "ab"],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": 3,
    }
    subject = audit(write_gguf(tmp_path / "vocabulary.gguf", keys))
    assert (subject.kind, subject.cache, subject.errors) == ("vocabulary", None, ())
    assert [finding.rule for finding in subject.findings] == ["TOK003"]


def test_tensors_without_an_architecture_are_a_model(tmp_path: Path) -> None:
    subject = audit(write_gguf(tmp_path / "nameless.gguf", {"general.name": "x"}, TENSORS))
    assert (subject.kind, subject.errors) == ("model", ())
    assert [finding.rule for finding in subject.findings] == ["ARCH001"]


# Targets


def names(report_of: list[str]) -> list[tuple[str, list[str]]]:
    report = audit_targets(report_of, Mandate(rules={"AA001": rule("AA001")}))
    return [
        (Path(subject.target).name, [error.code for error in subject.errors])
        for subject in report.subjects
    ]


def test_a_folder_has_several_models_and_a_set_once(tmp_path: Path) -> None:
    write_gguf(tmp_path / "b.gguf", KEYS, TENSORS)
    write_split_gguf(tmp_path, KEYS, TENSORS, shards=2, stem="a")
    (tmp_path / "sub").mkdir()
    write_gguf(tmp_path / "sub" / "c.gguf", KEYS, TENSORS)
    write_split_gguf(tmp_path / "sub", KEYS, TENSORS, shards=2, stem="a")
    (tmp_path / "readme.md").write_text("x", "utf-8")
    assert names([str(tmp_path)]) == [
        ("a-00001-of-00002.gguf", []),
        ("b.gguf", []),
        ("a-00001-of-00002.gguf", []),
        ("c.gguf", []),
    ]


def test_a_set_without_its_first_shard_is_not_audited(tmp_path: Path) -> None:
    shards = write_split_gguf(tmp_path, KEYS, TENSORS, shards=3, stem="a")
    shards[0].unlink()
    assert names([str(tmp_path)]) == [("a-00002-of-00003.gguf", ["source"])]


def test_what_cannot_be_had_does_not_stop_the_others(tmp_path: Path) -> None:
    good = write_gguf(tmp_path / "good.gguf", KEYS, TENSORS)
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"<html>")
    empty = tmp_path / "empty"
    empty.mkdir()
    targets = [str(tmp_path / "missing.gguf"), str(bad), str(empty), str(good)]
    found = names(targets)
    assert [name for name, _ in found] == ["missing.gguf", "bad.gguf", "empty", "good.gguf"]
    assert [bool(codes) for _, codes in found] == [True, True, True, False]


def test_an_unreadable_file_names_itself(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"<html>")
    subject = audit(bad)
    [error] = subject.errors
    assert (subject.kind, subject.status) == ("other", Status.NOT_AUDITED)
    assert error.where.file is not None
    assert Path(error.where.file).name == "bad.gguf"


def test_a_folder_that_cannot_be_listed_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gguf(tmp_path / "good.gguf", KEYS, TENSORS)
    locked = tmp_path / "locked"
    locked.mkdir()
    scandir: Callable[[str], object] = os.scandir

    def refusing(path: str) -> object:
        if Path(path) == locked:
            raise PermissionError(13, "Permission denied", str(locked))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    subjects = audit_targets([str(tmp_path)], Mandate(rules={"AA001": rule("AA001")})).subjects
    assert [subject.errors for subject in subjects] == [
        (),
        (
            Problem(
                code="source",
                message=f"can't list {locked}: Permission denied",
                where=Where(file=str(locked)),
            ),
        ),
    ]


# Cache table


def test_the_cache_table_has_the_training_length(model: Path, checkpoint: Path) -> None:
    cache = audit(model, against=checkpoint).cache
    assert cache is not None
    per_token = 3 * 2 * (16 + 16) * 2
    assert cache.bytes == tuple(
        BytesAt(
            tokens=tokens,
            implied=per_token * tokens,
            expected=per_token * tokens,
            ideal=per_token * tokens,
            full_attention=per_token * tokens,
        )
        for tokens in (4096, 8192, 32768)
    )


@pytest.mark.parametrize(
    ("length", "asked", "shown"),
    [
        (8192, (1024, 2048), (1024, 2048)),
        (4096, (), (4096, 32768)),
        (0, (), (4096, 32768)),
        (131072, (), (4096, 32768, 131072)),
    ],
)
def test_lengths(
    tmp_path: Path, length: int, asked: tuple[int, ...], shown: tuple[int, ...]
) -> None:
    file = write_gguf(tmp_path / "model.gguf", {**KEYS, "llama.context_length": length}, TENSORS)
    cache = audit(file, CAUSE, lengths=asked).cache
    assert cache is not None
    assert tuple(row.tokens for row in cache.bytes) == shown
    assert (cache.expected, cache.ideal, cache.bytes[0].expected) == (None, None, None)


def test_rules_know_what_the_user_asked_for(model: Path, checkpoint: Path) -> None:
    seen: list[Settings] = []

    def looking(subject: Model, settings: Settings) -> Iterator[Outcome]:
        del subject
        seen.append(settings)
        return iter(())

    nosy = replace(rule("AA001"), check=OnModel(looking))
    audit(model, nosy, lengths=(1024,))
    audit(model, nosy, against=checkpoint)
    assert seen == [
        Settings(lengths=(1024,)),
        Settings(lengths=(4096, 8192, 32768), has_expected_layout=True),
    ]


@pytest.mark.parametrize("label", ["adapter", "mmproj", "imatrix"])
def test_a_label_switches_no_audit_off(tmp_path: Path, label: str) -> None:
    file = write_gguf(tmp_path / "m.gguf", {**KEYS, "general.type": label}, TENSORS)
    assert audit(file).kind == "model"


def test_a_name_hides_no_model_of_its_own(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m-00001-of-00002.gguf", KEYS, TENSORS)
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(b"garbage")
    write_gguf(tmp_path / "B.GGUF", KEYS, TENSORS)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    found = audit_targets([str(tmp_path)], Mandate(rules={})).subjects
    assert [(Path(each.target).name, [error.code for error in each.errors]) for each in found] == [
        ("link", ["source"]),
        ("B.GGUF", []),
        ("m-00001-of-00002.gguf", []),
        ("m-00002-of-00002.gguf", ["malformed"]),
    ]


def test_a_name_that_is_too_long_ends_no_run(model: Path) -> None:
    found = audit_targets(["a" * 300, str(model)], Mandate(rules={})).subjects
    assert [each.status for each in found] == [Status.NOT_AUDITED, Status.CLEAN]


def test_a_model_that_llama_cpp_refuses_is_let_go_of(tmp_path: Path) -> None:
    write_gguf(tmp_path / "refused.gguf", {"general.architecture": "llama"}, TENSORS)
    audit_targets([str(tmp_path)], Mandate(rules={}))
    gc.collect()
    gc.disable()
    try:
        audit_targets([str(tmp_path)], Mandate(rules={}))
        # What is not in a circle is gone already, a thousand files long.
        kept = [each.name for each in gc.get_objects() if isinstance(each, Gguf)]
        assert [name for name in kept if name.endswith("refused.gguf")] == []
    finally:
        gc.enable()


def test_files_whose_reference_nobody_finds_are_let_go_of(tmp_path: Path) -> None:
    for name in "abcd":
        write_gguf(tmp_path / f"{name}.gguf", KEYS, TENSORS)
    held: list[int] = []

    def progress(done: int, files: int, name: str) -> None:
        del done, files, name
        held.append(sum(isinstance(each, Gguf) for each in gc.get_objects()))

    mandate = Mandate(rules={}, policy=Policy(references={"*": "nowhere/at-all"}))
    gc.collect()
    gc.disable()
    try:
        audit_targets([str(tmp_path)], mandate, progress=progress)
    finally:
        gc.enable()
    assert held == held[:1] * 4

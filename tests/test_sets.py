"""Which files of a folder are held against each other, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine_subjects import ALL, KEYS, TENSORS
from gguf_audit.engine import audit_targets
from gguf_audit.evidence import Digest, Model, SetMember, Settings
from gguf_audit.fields import Fields
from gguf_audit.formats.gguf import open_gguf
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Hit, OnModel, OnSet, Outcome, Rule, Severity
from gguf_audit.sets import member_of, sets_of, stem_of
from gguf_audit.testing import FieldValue, write_gguf, write_split_gguf
from gguf_audit.verdict import SubjectReport
from gguf_audit.where import Where

NAMED: dict[str, FieldValue] = {
    **KEYS,
    "general.name": "Small Llama",
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": [f"t{index}" for index in range(8)],
    "tokenizer.ggml.scores": [0.0] * 8,
}
THETA = "llama.rope.freq_base"


#: What a companion holds: no weight of a model that runs.
ODD = [("odd.tensor", (64, 8), "F32")]


def write(folder: Path, name: str, *, runs: bool = True, **changed: FieldValue) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    keys = {**NAMED, **{key.replace("__", "."): value for key, value in changed.items()}}
    return write_gguf(file, keys, TENSORS if runs else ODD)


def audited(folder: Path) -> list[SubjectReport]:
    return list(audit_targets([str(folder)], Mandate(rules=ALL)).subjects)


def findings(folder: Path) -> list[tuple[str, str | None, Severity]]:
    """Return what is said of sets: the odd file below the folder, the key, the level."""
    return [
        (str(Path(str(found.where.file)).relative_to(folder)), found.where.key, found.severity)
        for subject in audited(folder)
        if subject.kind == "set"
        for found in subject.findings
    ]


# Names


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Qwen_Qwen3-8B-Q4_K_M.gguf", "qwen_qwen3-8b"),
        ("Qwen3-8B-UD-Q4_K_XL.gguf", "qwen3-8b"),
        ("Qwen3-8B-UD-IQ1_S.gguf", "qwen3-8b"),
        ("Qwen3-8B-BF16-00001-of-00002.gguf", "qwen3-8b"),
        ("Llama.Q8_0.gguf", "llama"),
        ("Llama.i1-IQ3_XXS.gguf", "llama.i1"),
        ("llama-fp16.gguf", "llama"),
        ("Llama-Q4_0_4_4.gguf", "llama"),
        ("DeepSeek-R1-UD-TQ1_0.gguf", "deepseek-r1"),
        ("gpt-oss-20b-MXFP4.gguf", "gpt-oss-20b"),
        ("q4_k_m.gguf", ""),
    ],
)
def test_a_name_is_known_without_its_quantization(name: str, stem: str) -> None:
    assert stem_of(f"folder/{name}") == (stem, True)


@pytest.mark.parametrize("name", ["Qwen2.gguf", "model.gguf", "Q4ever.gguf", "llama-f160.gguf"])
def test_a_name_without_a_quantization_stays(name: str) -> None:
    assert stem_of(name) == (name.removesuffix(".gguf").lower(), False)


def claims(*names: str, architecture: str = "llama", title: str = "X") -> list[list[str]]:
    members = [
        SetMember(
            name=f"m/{name}",
            architecture=architecture,
            byte_order="little",
            values={"general.name": title, "llama.block_count": 3},
            fields=Fields.of("llama", {}),
        )
        for name in names
    ]
    return [[Path(found.name).name for found in each.members] for each in sets_of(members)]


@pytest.mark.parametrize(
    ("names", "sets"),
    [
        (("a-Q4_0.gguf", "a-Q8_0.gguf"), [["a-Q4_0.gguf", "a-Q8_0.gguf"]]),
        (("a-Q4_0.gguf", "a.gguf"), [["a-Q4_0.gguf", "a.gguf"]]),
        (("a-Q4_0.gguf", "BF16/a-BF16.gguf"), [["a-Q4_0.gguf", "a-BF16.gguf"]]),
        # Other models, by their names.
        (("a-Q4_0.gguf", "b-Q8_0.gguf"), []),
        (("a-Q4_0.gguf", "a.i1-Q4_0.gguf"), []),
        # The name that llama-quantize gives to everything, in two folders.
        (("one/ggml-model-Q4_0.gguf", "two/ggml-model-Q8_0.gguf"), []),
        # Names that say nothing: then the metadata do.
        (("q4_0.gguf", "q8_0.gguf"), [["q4_0.gguf", "q8_0.gguf"]]),
        (("a.gguf", "b.gguf", "c.gguf"), [["a.gguf", "b.gguf", "c.gguf"]]),
        (("a.gguf",), []),
    ],
)
def test_what_claims_to_be_one_model(names: Sequence[str], sets: list[list[str]]) -> None:
    assert claims(*names) == sets


def test_files_without_any_name_claim_nothing() -> None:
    assert claims("a.gguf", "b.gguf", title="") == []


# Summaries


def test_a_summary_keeps_no_array_and_no_long_string(tmp_path: Path) -> None:
    long = "x" * 300
    file = write(tmp_path, "a.gguf", tokenizer__chat_template=long, other__key=1)
    found = member_of(open_gguf(file), str(file), frozenset({"k"}))
    assert found is not None
    assert found.told == {"k"}
    assert "other.key" not in found.values
    kinds = {key: value for key, value in found.values.items() if isinstance(value, Digest)}
    assert {key: (value.kind, value.count) for key, value in kinds.items()} == {
        "tokenizer.chat_template": ("characters", 300),
        "tokenizer.ggml.tokens": ("string", 8),
        "tokenizer.ggml.scores": ("float32", 8),
    }
    assert {field.key for field in found.fields} == {
        key for key in KEYS if key.startswith("llama.")
    }


def test_the_hash_of_an_array_is_that_of_its_items_wherever_it_stands(tmp_path: Path) -> None:
    one = write(tmp_path, "a.gguf")
    shards = write_split_gguf(tmp_path, {"general.url": "y" * 99, **NAMED}, TENSORS, shards=2)
    key = "tokenizer.ggml.tokens"
    summaries = [member_of(open_gguf(file), str(file)) for file in (one, *shards)]
    assert len({found.values[key] for found in summaries if found is not None}) == 1
    other = write(tmp_path, "b.gguf", tokenizer__ggml__tokens=[f"u{index}" for index in range(8)])
    changed = member_of(open_gguf(other), str(other))
    assert changed is not None
    assert changed.values[key] not in {found.values[key] for found in summaries if found}


# Folders


def test_the_odd_quant_of_a_folder_is_found_without_a_reference(tmp_path: Path) -> None:
    for name in ("m-Q4_K_M.gguf", "m-UD-IQ2_M.gguf", "Q8_0/m-Q8_0.gguf"):
        write(tmp_path, name, general__file_type=len(name), quantize__imatrix__file=name)
    write(tmp_path, "m-F16.gguf", llama__rope__freq_base=10000.0)
    assert findings(tmp_path) == [("m-F16.gguf", THETA, Severity.ERROR)]
    [subject] = [subject for subject in audited(tmp_path) if subject.kind == "set"]
    assert (subject.target, subject.architecture, subject.files) == (str(tmp_path), "llama", ())


def test_a_split_set_is_one_of_the_quants(tmp_path: Path) -> None:
    write(tmp_path, "m-Q4_K_M.gguf")
    write(tmp_path, "m-Q8_0.gguf")
    write_split_gguf(tmp_path, {**NAMED, THETA: 1e4}, TENSORS, shards=2, stem="m-BF16")
    assert findings(tmp_path) == [("m-BF16-00001-of-00002.gguf", THETA, Severity.ERROR)]


def test_a_file_lost_its_vocabulary(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path, f"m-{name}-Q4_0.gguf")
        write(tmp_path, f"{name}.gguf")
    write(tmp_path, "d.gguf", tokenizer__ggml__tokens=[f"u{index}" for index in range(8)])
    assert findings(tmp_path) == [("d.gguf", "tokenizer.ggml.tokens", Severity.ERROR)]


def test_what_is_wrong_without_its_siblings_is_said_once(tmp_path: Path) -> None:
    for name in ("m-Q4_0.gguf", "m-Q5_0.gguf"):
        write(tmp_path, name)
    write(tmp_path, "m-Q8_0.gguf", tokenizer__ggml__eos_token_id=77)
    assert [subject.kind for subject in audited(tmp_path)] == ["model"] * 3


@pytest.mark.parametrize("level", [Severity.WARNING, Severity.ERROR])
def test_what_is_only_suspected_is_held_against_its_siblings(
    tmp_path: Path, level: Severity
) -> None:
    def doubt(model: Model, settings: Settings) -> Iterator[Outcome]:
        del model, settings
        yield Hit(message="odd", where=Where(key=THETA), level=level)

    doubtful = Rule(
        id="AA001", name="doubt", levels=(level,), check=OnModel(doubt), authority="none"
    )
    for name in ("m-Q4_0.gguf", "m-Q5_0.gguf"):
        write(tmp_path, name)
    write(tmp_path, "m-Q8_0.gguf", llama__rope__freq_base=1e4)
    rules = {"AA001": doubtful, "PKG001": ALL["PKG001"]}
    report = audit_targets([str(tmp_path)], Mandate(rules=rules))
    of_sets = [subject for subject in report.subjects if subject.kind == "set"]
    assert len(of_sets) == (1 if level is Severity.WARNING else 0)


@pytest.mark.parametrize(
    ("name", "runs", "changed"),
    [
        # Another model, even one that a lazy converter gave the same name.
        ("other-Q4_0.gguf", True, {"llama.rope.freq_base": 1e4}),
        ("m-7b-Q4_0.gguf", True, {"llama.rope.freq_base": 1e4, "general.name": "Small Llama"}),
        ("m-F16.gguf", True, {"general.architecture": "llama4"}),
        ("other.gguf", True, {"general.name": "Other", "llama.rope.freq_base": 1e4}),
        # Companions.
        ("mmproj-m-F16.gguf", False, {"general.architecture": "clip"}),
        ("m-F16.gguf", False, {"general.type": "adapter", "llama.rope.freq_base": 1e4}),
        ("m-F32.gguf", False, {"general.type": "imatrix"}),
        # A vocabulary of its own.
        ("ggml-vocab-m.gguf", True, {}),
    ],
)
def test_silent_about_other_files_of_a_folder(
    tmp_path: Path, name: str, runs: bool, changed: dict[str, FieldValue]
) -> None:
    for sibling in ("m-Q4_K_M.gguf", "m-Q5_K_M.gguf", "m-Q8_0.gguf"):
        write(tmp_path, sibling)
    write(tmp_path, name, runs=runs, **changed)
    assert findings(tmp_path) == []


def test_silent_about_files_for_other_machines(tmp_path: Path) -> None:
    # The same numbers, in the other order of bytes.
    for name in ("m-Q4_0.gguf", "m-Q5_0.gguf", "m-Q8_0.gguf"):
        write(tmp_path, name)
    write_gguf(tmp_path / "m-F16.gguf", NAMED, TENSORS, byte_order="big")
    assert findings(tmp_path) == []


def test_silent_about_files_that_are_named_one_by_one(tmp_path: Path) -> None:
    names = [str(write(tmp_path, f"m-Q{bits}_0.gguf")) for bits in (4, 5, 8)]
    names.append(str(write(tmp_path, "m-F16.gguf", llama__rope__freq_base=1e4)))
    assert {subject.kind for subject in audit_targets(names, Mandate(rules=ALL)).subjects} == {
        "model"
    }


def test_a_rule_that_crashes_leaves_a_gap(tmp_path: Path) -> None:
    def crash(*_: object) -> list[Outcome]:
        raise ZeroDivisionError("x")

    broken = Rule(
        id="AA001",
        name="broken",
        levels=(Severity.ERROR,),
        check=OnSet(crash),  # type: ignore[arg-type] # it never returns
        authority="none",
    )
    write(tmp_path, "m-Q4_0.gguf")
    write(tmp_path, "m-Q8_0.gguf")
    report = audit_targets([str(tmp_path)], Mandate(rules={"AA001": broken}))
    [subject] = [subject for subject in report.subjects if subject.kind == "set"]
    assert [(skip.kind, skip.reason) for skip in subject.skips] == [
        ("crashed", "ZeroDivisionError: x")
    ]
    assert report.exit_code() == 3

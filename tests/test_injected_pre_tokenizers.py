"""Every wrong splitter, in files whose references have published pre-tokenizers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from engine_subjects import CONFIG, KEYS
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Severity
from gguf_audit.runtime.pre_tokenizers import SPLITTERS
from gguf_audit.testing import FieldValue, TensorSpec, write_gguf
from injected_pre_tokenizer import FAULTS, RULES, outcomes, told, wrong
from published_tokenizers import (
    CL100K,
    PUBLISHED,
    byte_level,
    regex,
    steps,
    vocabulary,
    write_tokenizer,
)

TOKENS = 368
TENSORS = [TensorSpec("token_embd.weight", (64, TOKENS))]
#: Others that split as the usual name does, whatever the texts.
ALIKE = {"qwen2": SPLITTERS["bailingmoe"].names, "llama-bpe": SPLITTERS["dbrx"].names}


def keys(pre: str) -> Mapping[str, FieldValue]:
    return {**KEYS, **vocabulary(pre)}


def checkpoint(folder: Path, pre_tokenizer: Json, normalizer: Json = None) -> str:
    made = folder / "checkpoint"
    made.mkdir(exist_ok=True)
    config: dict[str, Json] = {**CONFIG, "vocab_size": TOKENS}
    (made / "config.json").write_text(json.dumps(config), "utf-8")
    write_tokenizer(made, pre_tokenizer, normalizer)
    return str(made)


@pytest.mark.parametrize("name", ["qwen2", "starcoder", "llama-bpe"])
def test_every_wrong_splitter_is_one_finding(name: str, tmp_path: Path) -> None:
    reference = checkpoint(tmp_path, *PUBLISHED[name])
    right = (*SPLITTERS[name].names, *ALIKE.get(name, ()))
    found = list(outcomes(name, keys(name), TENSORS, reference, right, tmp_path))
    assert len(found) == len(FAULTS) >= 30
    assert [said for outcome in found if (said := wrong(outcome)) is not None] == []
    harmless = 1 if name == "starcoder" else 2
    assert told(found) == (len(FAULTS) - harmless, len(FAULTS) - harmless)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (CL100K, []),
        # Digits one by one, all together, and from the right.
        (CL100K.replace("{1,3}", ""), [("TOK020", "qwen2")]),
        (CL100K.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|", ""), []),
    ],
)
def test_a_reference_that_splits_otherwise(
    pattern: str, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    reference = checkpoint(tmp_path, steps(regex(pattern), byte_level(regex=False)))
    file = write_gguf(tmp_path / "model.gguf", keys("dbrx"), TENSORS)
    [report] = audit_targets([str(file)], Mandate(against=reference, rules=RULES)).subjects
    assert [(found.rule, found.expected) for found in report.findings] == expected


def test_a_fault_that_only_the_name_has_is_told_without_a_reference(tmp_path: Path) -> None:
    for fault in FAULTS:
        broken = {key: value for key, value in keys("qwen2").items() if key not in fault.changed}
        broken |= {key: value for key, value in fault.changed.items() if value is not None}
        file = write_gguf(tmp_path / "model.gguf", broken, TENSORS)
        [report] = audit_targets([str(file)], Mandate(rules=RULES)).subjects
        codes = [found.rule for found in report.findings if found.severity is Severity.ERROR]
        missing = fault.name in ("no name", "an empty name")
        unknown = fault.name.startswith(("an unknown", "a name in"))
        assert codes == (["TOK001"] if missing else ["TOK021"] if unknown else []), fault.name

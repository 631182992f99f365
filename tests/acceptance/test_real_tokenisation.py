"""A reference's tokenizer and a real llama.cpp on vocabularies that are right, and wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from engine_subjects import CONFIG, KEYS
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.gguf import ValueType
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Severity
from gguf_audit.testing import FieldValue, TensorSpec, write_gguf
from gguf_audit.verdict import SubjectReport
from gguf_audit_rules import load
from published_tokenizers import PUBLISHED, vocabulary, write_tokenizer

pytestmark = pytest.mark.acceptance

RULES = {rule.id: rule for rule in load() if rule.id.startswith("TOK02")}
#: Bytes spelled as letters, as our vocabulary has them.
SPELLED = [name for name in PUBLISHED if name != "gemma4"]
#: What llama.cpp only comes close to, as far as our vocabulary shows.
CLOSE = ("tiny_aya",)

Keys = dict[str, FieldValue]


def audited(folder: Path, name: str, keys: Mapping[str, FieldValue]) -> SubjectReport:
    """Audit a file of these keys against the published tokenizer of a name."""
    listed = vocabulary(name)["tokenizer.ggml.tokens"]
    assert isinstance(listed, tuple)
    assert isinstance(listed[1], list)
    count = len(listed[1])
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir()
    config: dict[str, Json] = {**CONFIG, "vocab_size": count}
    (checkpoint / "config.json").write_text(json.dumps(config), "utf-8")
    write_tokenizer(checkpoint, *PUBLISHED[name])
    tensors = [TensorSpec("token_embd.weight", (64, count))]
    file = write_gguf(folder / "model.gguf", {**KEYS, **keys}, tensors)
    [report] = audit_targets(
        [str(file)], Mandate(against=str(checkpoint), rules=RULES, probe=True)
    ).subjects
    return report


@pytest.mark.parametrize("name", SPELLED)
def test_a_right_file_makes_the_reference_s_tokens(name: str, tmp_path: Path) -> None:
    report = audited(tmp_path, name, vocabulary(name))
    alarms = [found for found in report.findings if found.severity is not Severity.INFO]
    assert [(found.rule, found.message) for found in alarms] == []
    assert [found.rule for found in report.findings] == (["TOK022"] if name in CLOSE else [])
    assert [skip.rule for skip in report.skips] == []


def splitter(keys: Keys) -> None:
    keys["tokenizer.ggml.pre"] = "gpt-2"


def merges(keys: Keys) -> None:
    kept = keys["tokenizer.ggml.merges"]
    assert isinstance(kept, tuple)
    assert isinstance(kept[1], list)
    keys["tokenizer.ggml.merges"] = (ValueType.STRING, kept[1][::-1])


def control(keys: Keys) -> None:
    types = keys["tokenizer.ggml.token_type"]
    assert isinstance(types, tuple)
    assert isinstance(types[1], list)
    keys["tokenizer.ggml.token_type"] = (ValueType.INT32, [*types[1][:-2], 1, 4])


def added(keys: Keys) -> None:
    types = keys["tokenizer.ggml.token_type"]
    assert isinstance(types, tuple)
    assert isinstance(types[1], list)
    keys["tokenizer.ggml.token_type"] = (ValueType.INT32, [*types[1][:-1], 1])


@pytest.mark.parametrize(
    ("fault", "rule", "severity", "shown"),
    [
        (splitter, "TOK020", Severity.ERROR, "HF: 1|2|3|4|5  this file: 12345"),
        (merges, "TOK022", Severity.WARNING, "makes other tokens of "),
        (control, "TOK022", Severity.ERROR, "HF: [START] ("),
        (added, "TOK022", Severity.WARNING, "HF: <tool> ("),
    ],
)
def test_a_fault_is_one_finding(
    fault: Callable[[Keys], None], rule: str, severity: Severity, shown: str, tmp_path: Path
) -> None:
    name = "starcoder" if fault is splitter else "gpt-2"
    keys = vocabulary(name)
    fault(keys)
    [found] = audited(tmp_path, name, keys).findings
    assert (found.rule, found.severity) == (rule, severity)
    assert shown in found.message


def test_what_follows_from_a_splitter_stands_beneath_it(tmp_path: Path) -> None:
    keys = vocabulary("starcoder")
    splitter(keys)
    [found] = audited(tmp_path, "starcoder", keys).findings
    [consequence] = found.consequences
    assert "makes other tokens of " in consequence

"""What users reported of pre-tokenizers: files that split otherwise, and some that don't."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_subjects import CONFIG, KEYS
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Severity
from gguf_audit.testing import FieldValue, TensorSpec, write_gguf
from gguf_audit_rules import load
from published_tokenizers import PUBLISHED, vocabulary, write_tokenizer

RULES = {rule.id: rule for rule in load() if rule.id in ("TOK001", "TOK020", "TOK021")}
PRE = "tokenizer.ggml.pre"
TOKENS = 368
TENSORS = [TensorSpec("token_embd.weight", (64, TOKENS))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A vocabulary that is right but for one thing, or right however odd it looks."""

    about: str
    #: Usual name of the reference's splitter.
    of: str
    #: Ids of published reports, of which this is one made again.
    rows: str = ""
    #: A key's other value, ``None`` for a key that is lost.
    changed: Mapping[str, FieldValue | None] = field(default_factory=dict[str, FieldValue | None])
    ignore_merges: bool = False
    #: Rule and level against the reference, and by itself.
    found: str = ""
    alone: str = ""


CASES = [
    Case(
        about="a file that is older than the key",
        rows="pre-001",
        of="llama-bpe",
        changed={PRE: None},
        ignore_merges=True,
        found="TOK020 error",
        alone="TOK001 error",
    ),
    Case(
        about="a vendor's file of a vision model lacks it",
        rows="pre-006",
        of="llama-bpe",
        changed={PRE: ""},
        ignore_merges=True,
        found="TOK020 error",
        alone="TOK001 error",
    ),
    Case(
        about="a fine-tune whose tokenizer adds no BOS hashes to another name",
        rows="pre-002",
        of="llama-bpe",
        changed={PRE: "smaug-bpe"},
        ignore_merges=True,
        found="TOK020 info",
    ),
    Case(
        about="the same, and nothing in the file says whether a BOS is added",
        rows="pre-003",
        of="llama-bpe",
        changed={PRE: "smaug-bpe", "tokenizer.ggml.add_bos_token": None},
        ignore_merges=True,
        found="TOK020 warning",
    ),
    Case(
        about="a name that the converter knows before the runtime does",
        rows="pre-008",
        of="gpt-2",
        changed={PRE: "olmo-1b"},
        found="TOK020 error",
        alone="TOK021 error",
    ),
    Case(
        about="the quieter fault: the default by name",
        of="qwen2",
        changed={PRE: "default"},
        found="TOK020 error",
    ),
    Case(about="a name that is newer than an old engine", of="gpt-4o", rows="pre-011"),
    Case(
        about="a vocabulary of pieces without the key",
        rows="pre-012",
        of="llama-bpe",
        changed={"tokenizer.ggml.model": "llama", PRE: None},
    ),
    Case(
        about="a vocabulary of pieces that names the default",
        of="llama-bpe",
        changed={"tokenizer.ggml.model": "llama", PRE: "default"},
    ),
    Case(
        about="word pieces, which take their name from the hash",
        of="llama-bpe",
        changed={"tokenizer.ggml.model": "bert", PRE: "jina-v2-en"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_report(case: Case, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    config: dict[str, Json] = {**CONFIG, "vocab_size": TOKENS}
    (checkpoint / "config.json").write_text(json.dumps(config), "utf-8")
    write_tokenizer(checkpoint, *PUBLISHED[case.of], ignore_merges=case.ignore_merges)
    changed: dict[str, FieldValue | None] = {**KEYS, **vocabulary(case.of), **case.changed}
    keys = {key: value for key, value in changed.items() if value is not None}
    file = write_gguf(tmp_path / "model.gguf", keys, TENSORS)
    against = told(file, str(checkpoint))
    assert (against, told(file, None)) == (case.found, case.alone)


def told(file: Path, reference: str | None) -> str:
    """Return rule and level of every finding."""
    [report] = audit_targets([str(file)], Mandate(against=reference, rules=RULES)).subjects
    assert [skip for skip in report.skips if skip.kind == "crashed"] == []
    return " ".join(f"{found.rule} {Severity(found.severity).value}" for found in report.findings)

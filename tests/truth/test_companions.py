"""Real files that go with a model, as official tools made them, and faults put into each."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from companion_faults import FAULTS, broken
from engine_subjects import audit
from gguf_audit.formats.gguf import open_gguf
from gguf_audit.rule import Severity
from gguf_audit.testing import write_gguf
from gguf_audit.verdict import SubjectReport

pytestmark = pytest.mark.truth

LOGGER = logging.getLogger(__name__)
SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))
COMPANIONS = SHARED / "companions"
FILES = sorted(COMPANIONS.glob("*/*.gguf"))
#: Folder and file -> the rules that tell what is wrong with it. A dropped pooler is no more
#: than a warning: the file ranks.
FAULTY = {
    "pixtral/mmproj.gguf": ["PKG033"],
    "lora_qwen3/adapter.gguf": ["PKG041"],
    "lora_qwen3_rslora/adapter.gguf": ["PKG041"],
    "classifier_bert/model.gguf": ["PKG049"],
}
KINDS = {"mmproj": "mmproj", "adapter": "adapter", "imatrix": "imatrix", "control": "other"}
#: Companions without a checkpoint of their own -> the pair that they go with.
BASES = {"imatrix_llama3_2": "llama3_2", "control_vector_gemma3_text": "gemma3_text"}


def reference(file: Path) -> str | None:
    own = file.parent / "hf"
    if own.is_dir():
        return str(own)
    base = SHARED / "pairs" / BASES[file.parent.name] / "hf"
    return str(base) if base.is_dir() else None


def bad(subject: SubjectReport) -> list[str]:
    # The text models' tokenizers were cut short, which rules of tokenizers may notice.
    return [
        found.rule
        for found in subject.findings
        if found.severity is not Severity.INFO and not found.rule.startswith("TOK")
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_each_is_read_as_what_it_is_and_only_faulty_ones_are_named(file: Path) -> None:
    kind = next((kind for name, kind in KINDS.items() if file.name.startswith(name)), "model")
    alone, beside = audit(file), audit(file, against=reference(file))
    assert (alone.kind, beside.kind) == (kind, kind)
    assert (alone.errors, beside.errors) == ((), ())
    assert bad(beside) == FAULTY.get(f"{file.parent.name}/{file.name}", [])
    assert set(bad(alone)) <= set(bad(beside))


def test_an_old_importance_matrix_is_named() -> None:
    [old] = COMPANIONS.glob("*/*.dat")
    subject = audit(old)
    assert subject.kind == "imatrix"
    assert "an importance matrix in the format from before GGUF" in subject.errors[0].message


@pytest.mark.parametrize("name", ["llama3_2", "qwen3"])
def test_adapters_fit_their_models_and_no_others(name: str) -> None:
    adapter = COMPANIONS / f"lora_{name}" / "adapter.gguf"
    for own in ("hf", "model.gguf"):
        assert bad(audit(adapter, against=SHARED / "pairs" / name / own)) == []
    other = {"llama3_2": "qwen3", "qwen3": "llama3_2"}[name]
    for strange in ("hf", "model.gguf"):
        assert bad(audit(adapter, against=SHARED / "pairs" / other / strange)) == ["PKG042"]


def test_every_fault_in_every_file_is_told(tmp_path: Path) -> None:
    untold: list[tuple[str, str, list[str]]] = []
    table: dict[str, int] = {}
    for file in FILES:
        if f"{file.parent.name}/{file.name}" in FAULTY:
            continue
        for fault in FAULTS:
            made = broken(open_gguf(file), fault)
            if made is None:
                continue
            other = write_gguf(tmp_path / "broken.gguf", *made)
            found = bad(audit(other, against=reference(file)))
            table[fault.name] = table.get(fault.name, 0) + 1
            if not set(found) & set(fault.told_by) or len(found) != 1:
                untold.append((f"{file.parent.name}/{file.name}", fault.name, found))
    for name, count in table.items():
        LOGGER.info("%s: %d", name, count)
    assert untold == []
    assert len(table) >= 30

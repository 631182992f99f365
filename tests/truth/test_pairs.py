"""Files that the official converter made, each beside its checkpoint: no alarm is true."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gguf_audit.engine import audit_targets
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Rule, Severity
from gguf_audit.verdict import SubjectReport
from gguf_audit_rules import load
from hub_server import Served, go_online, hub_of

pytestmark = pytest.mark.truth

#: Folder of the measured tables and conversions; see conftest.py.
SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))
#: Companions are in test_companions.py, with what is wrong about some; here their models.
FILES = [
    file
    for file in sorted(SHARED.glob("pairs/*/model*.gguf"))
    + sorted(SHARED.glob("companions/*/model.gguf"))
    if (file.parent / "hf" / "config.json").is_file() and file.parent.name != "classifier_bert"
]
RULES: dict[str, Rule] = {rule.id: rule for rule in load()}
#: Why a conversion can't be compared: its class isn't covered.
UNCOVERED = {"unknown-architecture", "unsupported"}


def name_of(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


def invented() -> frozenset[str]:
    """Return the pairs whose pre-tokenizer's name was given by hand."""
    index = SHARED / "pairs" / "INDEX.md"
    if not index.exists():
        return frozenset()
    found: set[str] = set()
    pair = ""
    for line in index.read_text("utf-8").splitlines():
        if heading := re.match(r"### (\S+)", line):
            pair = heading[1]
        elif line.startswith("- tok:") and line.rstrip().endswith("pre*"):
            found.add(pair)
    return frozenset(found)


#: And a companion's model: 512 tokens, which no hash of the converter's knows.
INVENTED = invented() | {"smolvlm"}


def audited(file: Path, against: str | None = None) -> SubjectReport:
    reference = against or str(file.parent / "hf")
    [subject] = audit_targets([str(file)], Mandate(against=reference, rules=RULES)).subjects
    return subject


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_right_conversion_raises_no_alarm(file: Path) -> None:
    subject = audited(file)
    alarms = [
        f"{finding.rule} {finding.severity} {finding.message}"
        for finding in subject.findings
        if finding.severity is not Severity.INFO
        if file.parent.name not in INVENTED or finding.where.key != "tokenizer.ggml.pre"
    ]
    assert alarms == []
    assert [error for error in subject.errors if error.code not in UNCOVERED] == []
    assert [skip for skip in subject.skips if skip.kind in ("crashed", "limit")] == []


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_repository_says_what_its_folder_says(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = audited(file)
    with Served(hub_of(file.parent / "hf")) as fake:
        go_online(monkeypatch, endpoint=fake.url, home=str(tmp_path))
        remote = audited(file, fake.repo)
    assert remote.reference is not None
    assert remote.reference.origin == "hub"
    assert told(remote) == told(local)


def told(subject: SubjectReport) -> tuple[object, ...]:
    """Return what is said of a file, but for what the reference is called."""
    found = sorted((each.rule, str(each.severity), each.where.key) for each in subject.findings)
    skips = sorted((skip.rule, skip.kind) for skip in subject.skips)
    return found, skips, sorted(error.code for error in subject.errors), subject.cache


def test_every_conversion_is_covered() -> None:
    uncovered = [
        name_of(file)
        for file in FILES
        if any(error.code in UNCOVERED for error in audited(file).errors)
    ]
    assert uncovered == [], f"{len(uncovered)} of {len(FILES)} aren't covered yet"


def test_a_misconversion_is_found() -> None:
    file = SHARED / "pairs_bad" / "nomic_bert.gguf"
    [subject] = audit_targets([str(file)], Mandate(rules=RULES)).subjects
    found = {(each.rule, each.where.key, str(each.expected)) for each in subject.findings}
    assert found == {
        ("ARCH003", "nomic-bert.block_count", "3"),
        ("ARCH003", "nomic-bert.embedding_length", "64"),
        # The feed-forward length is another one, too: neither key explains it.
        ("WT003", None, "[768, 3072]"),
    }

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from chat_subjects import CHATML, KEY, vocabulary
from engine_subjects import ALL, CONFIG, KEYS, TENSORS, audit, write_checkpoint
from gguf_audit import chats
from gguf_audit.engine import audit_targets
from gguf_audit.evidence import Model, Settings
from gguf_audit.finding import Skip
from gguf_audit.limits import LIMITS
from gguf_audit.mandate import Mandate
from gguf_audit.rule import OnModel, Outcome
from gguf_audit.testing import FieldValue, write_gguf
from gguf_audit.verdict import Status

TEMPLATES = {
    code: rule for code, rule in ALL.items() if code.startswith(("TPL", "SEC", "TOK025", "TOK027"))
}
ROOT = Path(__file__).parent.parent


def write(folder: Path, template: str | None, name: str = "model") -> Path:
    keys: dict[str, FieldValue] = {**KEYS, **vocabulary()}
    if template is not None:
        keys[KEY] = template
    return write_gguf(folder / f"{name}.gguf", keys, TENSORS)


@pytest.mark.parametrize(("template", "started"), [(None, False), (CHATML, True)])
def test_only_a_template_starts_a_process(
    template: str | None, started: bool, tmp_path: Path
) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from gguf_audit.api import audit\n"
        "audit(sys.argv[1])\n"
        "print('gguf_audit.probes.templates' in sys.modules, 'jinja2' in sys.modules)"
    )
    file = write(tmp_path, template)
    done = subprocess.run(
        [sys.executable, "-c", code, file, ROOT / "auditor", ROOT / "rules"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Never in this process, whatever happens in the other one.
    assert done.stdout.split() == [str(started), "False"]


def test_several_files_and_processes_are_told_apart(tmp_path: Path) -> None:
    texts = [CHATML, "{{", "{{ x.__class__ }}", "{{ 10 ** (10 ** 9) }}", CHATML]
    for number, text in enumerate(texts):
        write(tmp_path, text, f"model-{number}")
    for jobs in (1, 2):
        report = audit_targets([str(tmp_path)], Mandate(rules=TEMPLATES), jobs=jobs)
        found = [[finding.rule for finding in subject.findings] for subject in report.subjects]
        assert found == [[], ["TPL003"], ["SEC001"], ["SEC004"], []]


#: A child that a template can end by what it says.
MORTAL = """
import os, sys
sys.path += sys.argv[1:]
from gguf_audit.probes.template_child import serving
answers = serving._answers
def mortal(request, *, most):
    if request["template"].startswith("end"):
        os._exit(7)
    return answers(request, most=most)
serving._answers = mortal
serving.serve()
"""


def test_whatever_ends_its_process_those_of_later_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gguf_audit.probes.templates._PROGRAM", MORTAL)
    hostile = [f"end {number}" for number in range(24)]
    for number, text in enumerate([*hostile, CHATML, "{{ x.__class__ }}"]):
        write(tmp_path, text, f"model-{number:02}")
    subjects = audit_targets([str(tmp_path)], Mandate(rules=TEMPLATES)).subjects
    ended = f"{KEY} can't be looked at: its process ended early, exit code 7"
    for subject in subjects[: len(hostile)]:
        assert Skip(rule="SEC001", kind="limit", reason=ended) in subject.skips
    good, bad = subjects[len(hostile) :]
    assert (good.status, good.errors) == (Status.CLEAN, ())
    assert [finding.rule for finding in bad.findings] == ["SEC001"]


@pytest.mark.parametrize(("width", "ends"), [(64, frozenset({5})), (128, None)])
def test_where_another_model_ends_is_nothing_to_go_by(
    tmp_path: Path, width: int, ends: frozenset[int] | None
) -> None:
    checkpoint = write_checkpoint(tmp_path)
    (checkpoint / "config.json").write_text(json.dumps({**CONFIG, "hidden_size": width}), "utf-8")
    (checkpoint / "generation_config.json").write_text('{"eos_token_id": 5}', "utf-8")
    told: list[frozenset[int] | None] = []

    def note(subject: Model, settings: Settings) -> Iterator[Outcome]:
        del subject
        told.append(settings.reference_ends)
        return iter(())

    looking = replace(ALL["TOK027"], check=OnModel(note))
    audit(write(tmp_path, CHATML), looking, against=checkpoint)
    assert told == [ends]


def test_without_jinja_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        del name

    monkeypatch.setattr("importlib.util.find_spec", nothing)
    [subject] = audit_targets([str(write(tmp_path, CHATML))], Mandate(rules=TEMPLATES)).subjects
    reason = "chat templates can't be parsed: jinja2 isn't installed"
    assert Skip(rule="SEC001", kind="no-evidence", reason=reason) in subject.skips


def test_more_templates_than_are_looked_at_are_no_clean_audit(tmp_path: Path) -> None:
    hostile = "{{ ''.__class__ }}"
    keys: dict[str, FieldValue] = {**KEYS, **vocabulary(), KEY: CHATML}
    for number in range(LIMITS.templates):
        keys[f"{KEY}.t{number}"] = hostile if number + 1 == LIMITS.templates else CHATML
    file = write_gguf(tmp_path / "model.gguf", keys, TENSORS)
    report = audit_targets([str(file)], Mandate(rules=TEMPLATES))
    [subject] = report.subjects
    said = {skip.reason for skip in subject.skips if skip.rule == "SEC001"}
    last = f"{KEY}.t{LIMITS.templates - 1}"
    count = f"of {LIMITS.templates + 1} templates only {LIMITS.templates} are looked at"
    assert said == {f"{last} can't be looked at: {count}"}
    assert report.exit_code(None) == 3


def test_templates_that_take_long_end_the_audit_of_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chats, "LIMITS", LIMITS._replace(templates_seconds=0))
    keys: dict[str, FieldValue] = {**KEYS, **vocabulary(), KEY: CHATML, f"{KEY}.tool": CHATML}
    file = write_gguf(tmp_path / "model.gguf", keys, TENSORS)
    report = audit_targets([str(file)], Mandate(rules={"SEC001": ALL["SEC001"]}))
    [subject] = report.subjects
    reason = "can't be looked at: the templates before it took over 0 s"
    assert f"{KEY}.tool {reason}" in {skip.reason for skip in subject.skips}
    assert report.exit_code(None) == 3

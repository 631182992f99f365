"""Every case of fixtures/: the model is written, audited, and its report compared.

``finds`` in a recipe is what its author means to show, written by hand; ``expected.json``
beside it is the stable part of the whole report, written by ``--update-golden``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from gguf_audit import catalogue
from gguf_audit.engine import audit_targets
from gguf_audit.finding import Finding
from gguf_audit.json_values import as_json
from gguf_audit.mandate import Mandate
from gguf_audit.verdict import Report
from recipes import FIXTURES, Recipe, find_recipes, read_recipe

CASES = find_recipes()


def stable(report: Report) -> dict[str, Any]:
    """Return what of a report doesn't change when a sentence or a path does.

    Rules that are not applicable are left out: which those are follows from the rest,
    and every new rule would change every file.
    """
    (subject,) = report.subjects
    rows = () if subject.cache is None else subject.cache.bytes
    assert [finding.rule for finding in subject.findings if is_bare(finding)] == []
    return {
        "exit_code": report.exit_code(),
        "status": subject.status.value,
        "kind": subject.kind,
        "architecture": subject.architecture,
        "cache_bytes": {
            str(row.tokens): [row.implied, row.expected, row.ideal, row.full_attention]
            for row in rows
        },
        "findings": [
            [
                finding.rule,
                finding.severity.value,
                finding.where.key,
                as_json(finding.expected),
                as_json(finding.actual),
            ]
            for finding in subject.findings
        ],
        "errors": [[problem.code, problem.where.key] for problem in subject.errors],
        "skips": sorted(
            [skip.rule, skip.kind] for skip in subject.skips if skip.kind != "not-applicable"
        ),
    }


def audits(recipe: Recipe, folder: Path) -> dict[str, dict[str, Any]]:
    """Audit a case by itself and, if it has one, against its reference."""
    target = str(recipe.write(folder))
    rules = catalogue.load()
    found = {"alone": stable(audit_targets([target], Mandate(rules=rules)))}
    if recipe.against is not None:
        report = audit_targets([target], Mandate(against=recipe.against, rules=rules))
        found["against"] = stable(report)
    return found


def is_bare(finding: Finding) -> bool:
    """Tell whether a finding tells a number that neither a unit nor a key explains."""
    numbers = [value for value in (finding.expected, finding.actual) if type(value) is int]
    return bool(numbers) and finding.unit is None and finding.where.key is None


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", CASES)
def test_report_of(name: str, tmp_path: Path, update_golden: bool) -> None:
    recipe = read_recipe(name)
    found = audits(recipe, tmp_path)
    codes = {how: [finding[0] for finding in audit["findings"]] for how, audit in found.items()}
    meant = {how: [] if recipe.finds[how] is None else [recipe.finds[how]] for how in recipe.finds}
    assert codes == meant, "one cause, one finding"
    golden = recipe.folder / "expected.json"
    if update_golden:
        golden.write_text(as_golden(found), "utf-8")
    assert found == json.loads(golden.read_text("utf-8"))


def as_golden(found: dict[str, dict[str, Any]]) -> str:
    """Write one finding, one row, one skip a line: a change is then one line of a diff."""
    audits = [
        f'  "{how}": {{\n' + ",\n".join(_member(name, audit[name]) for name in audit) + "\n  }"
        for how, audit in found.items()
    ]
    return "{\n" + ",\n".join(audits) + "\n}\n"


def _member(name: str, value: Any) -> str:
    lines: list[str] = []
    if isinstance(value, list):
        lines = [json.dumps(item) for item in cast("list[object]", value)]
    if lines:
        return f'    "{name}": [\n      ' + ",\n      ".join(lines) + "\n    ]"
    return f'    "{name}": {json.dumps(value)}'


def test_every_case_has_a_golden_file_of_its_own() -> None:
    folders = {file.parent for file in FIXTURES.glob("*/*/expected.json")}
    assert folders == set(CASES.values())

"""The commands that findings print really repair the file."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gguf_audit import catalogue
from gguf_audit.engine import audit_targets
from gguf_audit.finding import Finding
from gguf_audit.mandate import Mandate
from gguf_audit.rule import SetChatTemplate
from gguf_audit.verdict import Report
from recipes import read_recipe

#: Case -> the command that repairs it.
COMMANDS = {
    "context-short": "gguf-set-metadata",
    "rope-base-wrong": "gguf-set-metadata",
    "kv-heads-wrong": "gguf-set-metadata",
    "query-heads-wrong": "gguf-set-metadata",
    "eos-wrong": "gguf-new-metadata",
    "pad-lost": "gguf-new-metadata",
    "pad-out-of-range": "gguf-new-metadata",
    "template-lost": "gguf-new-metadata",
}


def audited(path: Path, against: str | None) -> Report:
    return audit_targets([str(path)], Mandate(against=against, rules=catalogue.load()))


def carry_out(finding: Finding, folder: Path) -> Path:
    """Run a finding's command as a user would, and return the repaired file."""
    assert finding.fix is not None
    name, *arguments = shlex.split(finding.fix)
    if isinstance(finding.repair, SetChatTemplate):
        (folder / "chat_template.jinja").write_text(finding.repair.template, "utf-8")
    scripts = Path(sys.executable).parent
    subprocess.run(
        [scripts / name, *arguments],
        cwd=folder,
        # The script that works in place asks whether one is sure.
        input="YES\n",
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    return Path(arguments[0] if name == "gguf-set-metadata" else arguments[-1])


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("name", "command"), COMMANDS.items())
def test_printed_command_repairs(name: str, command: str, tmp_path: Path) -> None:
    recipe = read_recipe(name)
    # A blank in the path, as users have it.
    folder = tmp_path / "my models"
    folder.mkdir()
    (finding,) = audited(recipe.write(folder), recipe.against).findings
    assert finding.fix is not None
    assert finding.fix.startswith(f"{command} ")
    repaired = audited(carry_out(finding, folder), recipe.against)
    assert repaired.findings == ()
    assert repaired.exit_code() == 0

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_catalogue_has_a_line_per_rule(run: Run) -> None:
    done = run("rules")
    assert (done.returncode, done.stderr) == (0, "")
    codes = [line.split()[0] for line in done.stdout.splitlines()]
    assert codes == sorted(codes)
    assert {"ARCH001", "CTX001", "GGUF001", "KV101", "TOK001", "TPL001"} <= set(codes)


def test_a_family(run: Run) -> None:
    lines = run("rules", "kv").stdout.splitlines()
    assert len(lines) > 1
    assert all(line.startswith("KV") for line in lines)


def test_a_family_of_one_is_still_a_table(run: Run) -> None:
    assert run("rules", "TPL").stdout.startswith("TPL001  chat-template-lost")


def test_a_page_by_code_and_by_name(run: Run) -> None:
    done = run("rules", "kv103")
    assert done.stdout.startswith("# KV103 window-lost\n\n")
    assert "\n## Why it matters\n\n" in done.stdout
    assert run("rules", "window-lost").stdout == done.stdout


def test_an_unknown_code(run: Run) -> None:
    done = run("rules", "KV999")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no rule is called 'KV999'" in done.stderr


def test_a_checkout_that_is_not_installed_has_no_catalogue(
    run: Run, metadata: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [path for path in sys.path if "site-packages" not in path and path != str(metadata)]
    monkeypatch.setattr(sys, "path", roots)
    for command in (["rules"], ["check", "sound.gguf"]):
        done = run(*command)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == (
            "gguf-audit: the built-in rules are not installed: install gguf-audit itself "
            "(from a checkout: pip install -e .)\n"
        )

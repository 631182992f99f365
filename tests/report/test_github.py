from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gguf_audit.evidence import NO_REFERENCE
from gguf_audit.finding import Skip
from gguf_audit.report.github import render
from gguf_audit.report.places import Checkout
from gguf_audit.report.style import Style
from gguf_audit.rule import Severity
from report_examples import CONTEXT, LOST, UNREADABLE, everywhere, renamed, report


class Command(NamedTuple):
    name: str
    properties: dict[str, str]
    message: str


def _unescaped(text: str) -> str:
    for code, character in (("2C", ","), ("3A", ":"), ("0A", "\n"), ("0D", "\r"), ("25", "%")):
        text = text.replace(f"%{code}", character)
    return text


def commands(text: str) -> tuple[list[Command], list[str]]:
    """Return the commands that a runner sees (actions/runner, ActionCommand.cs), and the rest."""
    found: list[Command] = []
    rest: list[str] = []
    for line in text.splitlines():
        if not line.strip().startswith("::"):
            rest.append(line)
            continue
        head, end, message = line.strip()[2:].partition("::")
        assert end
        name, _, properties = head.partition(" ")
        pairs = [pair.partition("=") for pair in properties.split(",")]
        named = {key: _unescaped(value) for key, _, value in pairs}
        found.append(Command(name, named, _unescaped(message)))
    return found, rest


def test_every_cause_is_an_annotation() -> None:
    found, rest = commands(render(report(UNREADABLE, LOST)))
    assert rest == ["2 models: 1 error, 1 warning, 0 infos, 1 not fully audited"]
    assert [(each.name, each.properties) for each in found] == [
        ("error", {"file": "cut.gguf", "line": "1", "title": "not audited"}),
        ("notice", {"title": "skipped: no-evidence"}),
        ("notice", {"title": "skipped: no-evidence"}),
        ("error", {"file": "lost.gguf", "line": "1", "title": "KV103 window-lost"}),
        ("warning", {"file": "lost.gguf", "line": "1", "title": "CTX001 context-length-changed"}),
    ]
    assert found[3].message == (
        "needs a 512-token window on 15 of 18 layers, the key is absent\n"
        "expected: 512\n"
        "found: absent (the runtime then takes its default)\n"
        "where: gemma3.attention.sliding_window\n"
        "files: 1 of 2: lost.gguf\n"
        "also: the layers rotate with the global RoPE base\n"
        "fix: reconvert (no metadata tool can add this key)"
    )


def test_the_same_finding_over_many_files_is_one_annotation() -> None:
    many = [replace(renamed(LOST, f"{n}.gguf"), skips=()) for n in range(20)]
    found, _ = commands(render(report(*many)))
    assert len(found) == 2
    assert "files: 20 of 20\n" in found[0].message


def test_a_crash_is_an_error_and_what_nobody_gave_is_nothing() -> None:
    skips = (
        Skip(rule="KV101", kind="limit", reason="too many"),
        Skip(rule="KV102", kind="not-applicable", reason=NO_REFERENCE.reason),
    )
    subject = replace(LOST, findings=(), skips=skips)
    found, _ = commands(render(report(subject)))
    assert found == [Command("error", {"title": "skipped: limit"}, "too many (KV101)")]


def test_an_info_is_a_notice() -> None:
    finding = replace(CONTEXT, severity=Severity.INFO)
    subject = replace(LOST, findings=(finding,), skips=())
    [found], _ = commands(render(report(subject)))
    assert found.name == "notice"


def test_the_path_is_that_of_the_repository() -> None:
    checkout = Checkout(root="/repo", folder="/repo/models")
    found, _ = commands(render(report(UNREADABLE), checkout=checkout))
    assert found[0].properties["file"] == "models/cut.gguf"


def test_what_separates_is_escaped() -> None:
    subject = renamed(replace(LOST, skips=()), "a,title=x::%0Ab:c.gguf")
    text = render(report(subject))
    assert "file=a%2Ctitle=x%3A%3A%250Ab%3Ac.gguf," in text
    assert commands(text)[0][0].properties["file"] == "a,title=x::%0Ab:c.gguf"


@given(st.text() | st.text("%:,\r\n=#[]stop-commands"), st.booleans())
def test_no_text_from_a_file_is_a_command(text: str, unicode: bool) -> None:
    shown = render(report(everywhere(text), LOST), style=Style(unicode=unicode))
    found, rest = commands(shown)
    assert rest == ["2 models: 1 error, 2 warnings, 0 infos, 1 accepted, 1 not fully audited"]
    assert {each.name for each in found} <= {"error", "warning", "notice"}
    assert all(set(each.properties) <= {"file", "line", "title"} for each in found)
    assert all(line.isprintable() for line in shown.split("\n"))
    shown.encode("utf-8" if unicode else "ascii")

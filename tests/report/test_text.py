from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gguf_audit.catalogue import Page
from gguf_audit.evidence import NO_REFERENCE
from gguf_audit.fields import Origin
from gguf_audit.finding import Skip
from gguf_audit.report.style import Detail, Style
from gguf_audit.report.text import render
from gguf_audit.rule import Severity
from gguf_audit.verdict import FileSummary, SubjectReport
from report_examples import CACHE, CONTEXT, LOST, MIB, UNREADABLE, everywhere, renamed, report

PAGES = {
    "KV103": Page(
        summary="The window is lost.",
        sections={"Why it matters": "llama.cpp allocates a full\ncache. It says nothing."},
    )
}

WHOLE = """\
ERROR  lost.gguf: 1 error, 1 warning, gemma3
    against   google/gemma-3-270m (built-in card); no tensors, no tokenizer

  error KV103 window-lost
    what      needs a 512-token window on 15 of 18 layers, the key is absent
    expected  512
    found     absent (the runtime then takes its default)
    where     gemma3.attention.sliding_window
    why       llama.cpp allocates a full cache.
    also      the layers rotate with the global RoPE base
    fix       reconvert (no metadata tool can add this key)
    help      gguf-audit rules KV103

  warning CTX001 context-length-changed
    what      131072 tokens, the reference was trained on 32768
    expected  32768
    found     131072
    where     gemma3.context_length, offset 1,234
    fix       gguf-set-metadata lost.gguf gemma3.context_length 32768
    help      gguf-audit rules CTX001

  KV cache in MiB: llama.cpp b11434, one sequence, f16
    tokens   this file         right conversion   full attention
     4,096          72                       27               72
    32,768         576   111.00 (116,392,448 B)              576
    5.2 times a right conversion at 32,768 tokens

    skipped   TOK004: the card has no tokenizer
    skipped   TPL001: the card has no template

1 model: 1 error, 1 warning, 0 infos
"""


def test_one_subject_whole() -> None:
    assert render(report(LOST), pages=PAGES) == WHOLE


def test_only_the_verdict() -> None:
    text = render(report(LOST), style=Style(detail=Detail.VERDICT))
    assert text == "ERROR  lost.gguf: 1 error, 1 warning, gemma3\n"


def test_everything_names_skips_files_and_identities() -> None:
    text = render(report(LOST), style=Style(detail=Detail.EVERYTHING))
    assert f"    file      lost.gguf: 4,096 bytes, header sha256 {'ab' * 32}\n" in text
    assert "    no match  WT001: no tensor of this type\n" in text
    assert "    identity  0123456789abcdef\n" in text
    assert "    authority llama.cpp b11434, src/models/gemma3.cpp\n" in text


@pytest.mark.parametrize(
    ("severity", "verdict"),
    [(Severity.INFO, "NOT AUDITED"), (Severity.WARNING, "WARNING"), (Severity.ERROR, "ERROR")],
)
def test_an_info_is_no_verdict_on_what_was_not_audited(severity: Severity, verdict: str) -> None:
    found = replace(LOST.findings[0], severity=severity)
    half = replace(LOST, findings=(found,), errors=UNREADABLE.errors)
    text = render(report(half), style=Style(detail=Detail.VERDICT))
    assert text.startswith(f"{verdict}  lost.gguf: 1 {severity}, gemma3\n    not done  ")


def test_what_was_not_audited_says_why_first() -> None:
    assert render(report(UNREADABLE)) == (
        "NOT AUDITED  cut.gguf\n"
        "    because   the header ends in the middle of a key (offset 77)\n"
        "\n"
        "1 model: 0 errors, 0 warnings, 0 infos, 1 not fully audited\n"
    )


def test_nothing_to_audit_is_not_clean() -> None:
    assert render(report()) == "NOT AUDITED  there was nothing to audit\n"


def test_clean_and_partial() -> None:
    clean = SubjectReport(target="fine.gguf", architecture="llama")
    partial = replace(clean, target="alone.gguf", skips=LOST.skips)
    assert render(report(clean, partial)) == (
        "CLEAN  fine.gguf: nothing found, llama\n"
        "PARTIAL  alone.gguf: nothing found, 2 rules could not look, llama\n"
        "\n"
        "    skipped   TOK004: the card has no tokenizer\n"
        "    skipped   TPL001: the card has no template\n"
        "\n"
        "2 models: 0 errors, 0 warnings, 0 infos\n"
    )


@pytest.mark.parametrize(
    ("expected", "actual", "unit", "told"),
    [
        (1 << 20, 1, "byte", ["1,048,576 bytes", "1 byte"]),
        (2048, None, "byte", ["2,048 bytes", "absent"]),
        (0, [64, 1], "number", ["0 numbers", "64 numbers, 1 number"]),
        ({"8192 tokens": 5}, "7B", "byte", ["8192 tokens: 5 bytes", "7B"]),
        # The value of a key, as it stands in the file.
        (1 << 20, {"a": 1}, None, ["1048576", '{"a": 1}']),
    ],
)
def test_a_quantity_has_its_unit(
    expected: object, actual: object, unit: str | None, told: list[str]
) -> None:
    finding = replace(CONTEXT, expected=expected, actual=actual, unit=unit)
    text = render(report(replace(LOST, findings=(finding,))))
    assert re.findall("^    (?:expected|found   )  (.*)$", text, re.MULTILINE) == told


PROJECTOR = SubjectReport(
    target="mmproj.gguf",
    kind="mmproj",
    files=(FileSummary(name="mmproj.gguf", size_bytes=9, header_sha256="cd" * 32),),
)
SET = SubjectReport(target=".", kind="set", findings=(CONTEXT,))


@pytest.mark.parametrize(
    ("subjects", "count"),
    [
        ([LOST, PROJECTOR], "1 model, 1 other file"),
        ([LOST, PROJECTOR, PROJECTOR, UNREADABLE], "2 models, 2 other files"),
        ([PROJECTOR], "1 file"),
        ([PROJECTOR, PROJECTOR], "2 files"),
        ([LOST, SET], "1 model"),
        ([replace(LOST, kind="vocabulary")], "1 model"),
    ],
)
def test_what_is_no_model_is_not_counted_as_one(subjects: list[SubjectReport], count: str) -> None:
    last = render(report(*subjects)).splitlines()[-1]
    assert last.partition(":")[0] == count


def test_what_goes_with_one_model_hides_nothing_of_its_cache() -> None:
    row = replace(CACHE.bytes[0], implied=27 * MIB)
    fine = replace(LOST, findings=(), skips=(), cache=replace(CACHE, bytes=(row,)))
    table = (
        "  KV cache in MiB: llama.cpp b11434, one sequence, f16\n"
        "    tokens   this file   right conversion   full attention\n"
    )
    assert table in render(report(fine, PROJECTOR, SET))
    assert table not in render(report(fine, fine))


def test_the_same_finding_over_many_files_is_told_once() -> None:
    many = [renamed(LOST, f"{number:02}.gguf") for number in range(20)]
    text = render(report(*many))
    assert text.count("KV103 window-lost") == 1
    assert text.count("    files     20 of 20\n") == 2
    assert text.count("KV cache in MiB") == 1


def test_a_finding_that_some_files_have_names_them() -> None:
    text = render(report(LOST, UNREADABLE, *(renamed(LOST, f"{n}.gguf") for n in range(6))))
    wanted = "7 of 8: lost.gguf, 0.gguf, 1.gguf, 2.gguf, 3.gguf and 2 more"
    assert f"    files     {wanted}\n" in text


def test_files_that_differ_are_told_apart() -> None:
    other = replace(LOST, target="b.gguf", findings=(replace(CONTEXT, actual=1),))
    assert render(report(LOST, other)).count("CTX001 context-length-changed") == 2


def test_more_than_one_command_is_said() -> None:
    fixes = [replace(LOST, findings=(replace(CONTEXT, fix=f"fix {name}"),)) for name in "ab"]
    assert (
        "    fix       fix a\n              and likewise for 1 more (--format json)\n"
    ) in render(report(*fixes))


def test_rules_that_crashed_are_never_folded_away() -> None:
    skips = tuple(
        Skip(rule=f"KV{number}", kind="no-evidence", reason=f"reason {number}")
        for number in range(100, 104)
    )
    crashed = Skip(rule="TOK001", kind="crashed", reason="ValueError: x")
    subject = replace(LOST, findings=(), cache=None, skips=(*skips, crashed))
    text = render(report(subject))
    assert "    skipped   TOK001: crashed: ValueError: x\n    skipped   KV100: reason 100\n" in text
    assert "    skipped   3 rules for other reasons (-v)\n" in text


def test_many_rules_with_one_reason_are_counted() -> None:
    skips = tuple(
        Skip(rule=f"KV{n}", kind="not-applicable", reason=NO_REFERENCE.reason)
        for n in range(100, 114)
    )
    subject = replace(LOST, reference=None, skips=skips)
    assert "    skipped   14 rules: a reference is needed: give --against\n" in render(
        report(subject)
    )


@pytest.mark.parametrize(
    ("actual", "origin", "shown"),
    [
        (True, None, "true"),
        (1.5, Origin.SHAPE, "1.5 (from a tensor's shape)"),
        (8, Origin.RUNTIME_DEFAULT, "8 (runtime default)"),
        ("a\x1b[31m\n", Origin.KEY, "a\\x1b[31m\\n"),
        (tuple(range(14)), None, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... (14 in all)"),
        ("x" * 201, None, "x" * 200 + "... (1 more characters)"),
        ({"a": [None]}, None, '{"a": [null]}'),
    ],
)
def test_values(actual: object, origin: Origin | None, shown: str) -> None:
    finding = replace(CONTEXT, actual=actual, origin=origin)
    text = render(report(replace(LOST, findings=(finding,))))
    assert f"    found     {shown}\n" in text


def test_long_lines_hang_on_a_terminal_and_commands_stay_whole() -> None:
    lines = render(report(LOST), style=Style(width=60)).splitlines()
    position = lines.index("    what      needs a 512-token window on 15 of 18 layers,")
    assert lines[position + 1] == "              the key is absent"
    assert "    fix       gguf-set-metadata lost.gguf gemma3.context_length 32768" in lines


def test_colours_are_the_only_difference() -> None:
    coloured = render(report(LOST, UNREADABLE), style=Style(color=True))
    plain = render(report(LOST, UNREADABLE))
    assert coloured != plain
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain


def test_whole_mebibytes_carry_no_bytes() -> None:
    assert LOST.cache is not None
    rows = tuple(replace(row, expected=27 * MIB) for row in LOST.cache.bytes)
    subject = replace(LOST, cache=replace(LOST.cache, bytes=rows))
    assert " B)" not in render(report(subject))


@given(st.text(), st.sampled_from([None, 40]), st.booleans())
def test_no_text_from_a_file_reaches_the_terminal_raw(
    text: str, width: int | None, unicode: bool
) -> None:
    style = Style(detail=Detail.EVERYTHING, width=width, unicode=unicode)
    shown = render(report(everywhere(text), LOST), style=style)
    assert all(line.isprintable() for line in shown.split("\n"))
    shown.encode("utf-8" if unicode else "ascii")


# References


def against(*subjects: SubjectReport) -> list[str]:
    text = " ".join(render(report(*subjects)).split())
    return [each.partition(" error ")[0] for each in text.split(" against ")[1:]]


CARD = "google/gemma-3-270m (built-in card); no tensors, no tokenizer"


def test_a_common_reference_is_told_once() -> None:
    assert against(LOST, renamed(LOST, "b.gguf")) == [CARD]


def test_each_of_several_references_says_which_files_it_is_for() -> None:
    assert LOST.reference is not None
    other = replace(LOST.reference, id="owner/other", note="")
    many = [replace(renamed(LOST, f"{n}.gguf"), reference=other) for n in range(9)]
    assert against(LOST, *many) == [
        f"{CARD}; for lost.gguf",
        ("owner/other (built-in card); for 0.gguf, 1.gguf, 2.gguf, 3.gguf, 4.gguf and 4 more"),
    ]


def test_a_reference_is_not_that_of_a_file_that_has_none() -> None:
    assert against(LOST, UNREADABLE) == [f"{CARD}; for lost.gguf"]
    held = replace(UNREADABLE, reference=LOST.reference)
    assert against(LOST, held) == [f"{CARD}; for all 2 files"]


def test_a_file_that_the_message_names_is_no_place() -> None:
    [error] = UNREADABLE.errors
    named = replace(error, message="ref.json is none", where=replace(error.where, file="ref.json"))
    assert "    because   ref.json is none (offset 77)\n" in render(
        report(replace(UNREADABLE, errors=(named,)))
    )


def test_the_beginning_of_a_file_is_no_place() -> None:
    [error] = UNREADABLE.errors
    first = replace(error, where=replace(error.where, offset=0))
    assert "    because   the header ends in the middle of a key\n" in render(
        report(replace(UNREADABLE, errors=(first,)))
    )

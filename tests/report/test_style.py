from __future__ import annotations

import pytest

from gguf_audit.report.style import Paint, Style, plural


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日", "plain é 日"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x00\x1b\x7f\x9b", "\\x00\\x1b\\x7f\\x9b"),
        ("\u202e\u2066\u200b\u2028\ufeff", "\\u202e\\u2066\\u200b\\u2028\\ufeff"),
        ("\udcff\ud800", "\\xff\\ud800"),
        ("\U000e0001", "\\U000e0001"),
        ("\u3164\ufe0f\U000e0100", "\\u3164\\ufe0f\\U000e0100"),
        ("a ##[error]b", "a #\\x23[error]b"),
        ("###vso[task.setvariable]", "##\\x23vso[task.setvariable]"),
        ("# 1 [x] ## heading", "# 1 [x] ## heading"),
    ],
)
def test_what_a_terminal_may_not_be_sent_is_spelled_out(text: str, shown: str) -> None:
    assert Style().safe(text) == shown


def test_ascii_only() -> None:
    assert Style(unicode=False).safe("é日\U0001f600") == "\\xe9\\u65e5\\U0001f600"


def test_long_text_is_cut_with_a_count() -> None:
    assert Style().safe("x" * 1205, limit=3) == "xxx... (1,202 more characters)"
    assert Style().safe("xyz", limit=3) == "xyz"
    assert Style().safe("x" * 1205, limit=None) == "x" * 1205


def test_paint() -> None:
    assert Style(color=True).paint("x", Paint.BAD) == "\x1b[1;31mx\x1b[0m"
    assert Style().paint("x", Paint.BAD) == "x"


def test_plural() -> None:
    assert [plural(n, "rule") for n in (0, 1, 2, 1000)] == [
        "0 rules",
        "1 rule",
        "2 rules",
        "1,000 rules",
    ]

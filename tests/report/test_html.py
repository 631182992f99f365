from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gguf_audit.report.html import render
from gguf_audit.report.style import Detail, Style
from gguf_audit.verdict import PolicyFacts, Report
from report_examples import LOST, UNREADABLE, everywhere, renamed, report


class Seen(HTMLParser):
    """What a browser makes of a page: elements with their attributes, and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.lines: list[str] = []
        self.odd: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(attrs)))

    def handle_data(self, data: str) -> None:
        self.lines.append(data)

    def handle_comment(self, data: str) -> None:
        self.odd.append(data)

    def handle_pi(self, data: str) -> None:
        self.odd.append(data)


def of(text: str) -> Report:
    return report(everywhere(text), LOST)


PLAIN = Seen(render(of("plain")))


def test_everything_is_told() -> None:
    policy = PolicyFacts(file="p.toml", found=False, profile=None)
    lines = Seen(render(replace(of("plain"), policy=policy))).lines
    for told in (
        "2 models: 1 error, 2 warnings, 0 infos, 1 accepted, 1 not fully audited",
        "ERROR",
        "WARNING",
        "lost.gguf",
        "google/gemma-3-270m (built-in card); no tensors, no tokenizer",
        "p.toml",
        "needs a 512-token window on 15 of 18 layers, the key is absent",
        "absent (the runtime then takes its default)",
        "gguf-set-metadata lost.gguf gemma3.context_length 32768",
        "116,392,448",
        "5.2 times a right conversion at 32,768 tokens",
        "KV101: plain (crashed)",
        "gguf-audit 0.1.0; what is said of runtimes means llama.cpp b11434",
    ):
        assert any(told in line for line in lines), told


def test_what_was_not_audited_says_why() -> None:
    lines = Seen(render(report(UNREADABLE))).lines
    assert "NOT AUDITED" in lines
    assert "the header ends in the middle of a key (offset 77)" in lines


def test_only_the_verdict() -> None:
    lines = Seen(render(report(LOST), detail=Detail.VERDICT)).lines
    assert "lost.gguf" in lines
    assert not any("window" in line for line in lines)


def test_the_same_finding_over_many_files_is_told_once() -> None:
    page = render(report(*(renamed(LOST, f"{n}.gguf") for n in range(20))))
    assert page.count("KV103 window-lost") == 1
    assert "20 of 20" in page


def test_nothing_is_run_or_loaded() -> None:
    assert {tag for tag, _ in PLAIN.elements} == {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "span", "code"),
        *("table", "tr", "td", "th", "dl", "dt", "dd", "div", "ul", "li", "footer"),
    }
    assert {name for _, attrs in PLAIN.elements for name, _ in attrs} == {
        *("lang", "charset", "http-equiv", "content", "name", "class"),
    }


@pytest.mark.parametrize("detail", list(Detail))
@given(st.text())
@example("<script>alert(1)</script><!-- x --><?y?>&lt;&#60;\"'")
@example("</code></td></table></style>")
def test_no_text_from_a_file_is_markup(detail: Detail, text: str) -> None:
    page = render(of(text), detail=detail)
    assert page.isascii()
    assert Seen(page).elements == Seen(render(of("plain"), detail=detail)).elements or not text
    assert Seen(page).odd == []
    assert Style().safe(text) in "".join(Seen(page).lines)

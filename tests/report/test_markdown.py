from __future__ import annotations

import importlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gguf_audit.report.markdown import render
from gguf_audit.report.style import Detail, Style
from gguf_audit.verdict import PolicyFacts, Report, SubjectReport
from report_examples import CONTEXT, LOST, UNREADABLE, everywhere, renamed, report

#: GitHub's own parser and its extensions.
cmarkgfm: Any = importlib.import_module("cmarkgfm")
OPTIONS: Any = importlib.import_module("cmarkgfm.cmark").Options

WHOLE = """\
## gguf-audit

**2 models: 1 error, 1 warning, 0 infos, 1 not fully audited**

| verdict | file | |
|---|---|---|
| **ERROR** | `lost.gguf` | 1 error, 1 warning, gemma3 |
| **NOT AUDITED** | `cut.gguf` | the header ends in the middle of a key (offset 77) |

Against google/gemma-3-270m (built-in card); no tensors, no tokenizer; for lost.gguf.

### error: KV103 window-lost

needs a 512-token window on 15 of 18 layers, the key is absent

- **expected** `512`
- **found** `absent (the runtime then takes its default)`
- **where** `gemma3.attention.sliding_window`
- **files** `1 of 2: lost.gguf`
- **also** the layers rotate with the global RoPE base
- **fix** `reconvert (no metadata tool can add this key)`
- **help** `gguf-audit rules KV103`

### warning: CTX001 context-length-changed

131072 tokens, the reference was trained on 32768

- **expected** `32768`
- **found** `131072`
- **where** `gemma3.context_length, offset 1,234`
- **files** `1 of 2: lost.gguf`
- **fix** `gguf-set-metadata lost.gguf gemma3.context_length 32768`
- **help** `gguf-audit rules CTX001`

### Cache of `lost.gguf`

KV cache in MiB: llama.cpp b11434, one sequence, f16.

| tokens | this file | right conversion | full attention |
| --: | --: | --: | --: |
| 4,096 | 72 | 27 | 72 |
| 32,768 | 576 | 111.00 (116,392,448 B) | 576 |

**5.2 times a right conversion at 32,768 tokens**

### Rules that did not look

- TOK004: the card has no tokenizer
- TPL001: the card has no template
"""


def test_the_report_whole() -> None:
    assert render(report(LOST, UNREADABLE)) == WHOLE


def test_only_the_verdict() -> None:
    text = render(report(LOST), style=Style(detail=Detail.VERDICT))
    assert text == (
        "## gguf-audit\n\n**1 model: 1 error, 1 warning, 0 infos**\n\n"
        "| verdict | file | |\n|---|---|---|\n"
        "| **ERROR** | `lost.gguf` | 1 error, 1 warning, gemma3 |\n\n"
        "Against google/gemma-3-270m (built-in card); no tensors, no tokenizer.\n"
    )


def test_who_accepts_what_is_said() -> None:
    policy = PolicyFacts(file="a_b.toml", found=True, profile="deploy")
    subject = replace(everywhere("a_b"), findings=(), errors=(), skips=(), cache=None)
    text = render(replace(report(subject), policy=policy))
    assert text.startswith(
        "## gguf-audit\n\n**1 model: 0 errors, 0 warnings, 0 infos, 1 accepted** "
        "by `a_b.toml, profile deploy`\n\n"
    )
    assert "- **policy** a\\_b.toml, profile deploy (found from the working directory" in text
    assert "- **accepted** warning CTX001 context-length-changed in a\\_b: a\\_b, until" in text


def test_nothing_to_audit_is_not_clean() -> None:
    assert render(report()) == (
        "## gguf-audit\n\n**nothing was audited: there was nothing to audit**\n"
    )


def test_among_many_files_those_that_are_not_clean_are_shown() -> None:
    clean = [SubjectReport(target=f"{n}.gguf") for n in range(150)]
    text = render(report(*clean, UNREADABLE))
    assert text.index("`cut.gguf`") < text.index("`0.gguf`")
    assert "| | and 51 more | |\n" in text


def test_a_comment_never_grows_too_long() -> None:
    many = [replace(CONTEXT, message=f"{n}{'x' * 1900}", fix="y" * 4000) for n in range(40)]
    text = render(report(replace(LOST, findings=tuple(many))))
    assert len(text) < 65_536
    assert re.search(r"\n\n[0-9]+ more sections: `--format json` has it all\.\n\Z", text)


class Seen(HTMLParser):
    """What a reader of the rendered page sees: elements, and text outside of code."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.code = 0
        self.text = ""
        self.whole = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if all(name == "align" for name, _ in attrs):
            self.elements.append(tag)
        else:
            self.elements.append(f"{tag} {attrs}")
        self.code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self.code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.whole += data
        self.text += data if not self.code else "\0"


def seen(text: str) -> Seen:
    reader = Seen()
    reader.feed(cmarkgfm.github_flavored_markdown_to_html(text, OPTIONS.CMARK_OPT_UNSAFE))
    reader.close()
    return reader


def of(text: str) -> Report:
    return report(everywhere(text), LOST)


PLAIN = seen(render(of("plain")))


@pytest.mark.parametrize(
    "text",
    [
        "@everyone",
        "a@b.example",
        "fixes #1 and owner/repo#2",
        "<script>alert(1)</script>",
        "<!-- hidden",
        "</code></td></table><b>",
        "| cell | cell |",
        "a\\|b|`c`|``d",
        "[link](https://evil.example) ![image](//evil.example/i.png)",
        "https://evil.example/x www.evil.example http://a",
        "**bold** _it_ ~~no~~ $x$",
        "- item",
        "1. item",
        "2) item",
        "# heading",
        "> quote",
        "---",
        "===",
        "+ item",
        "    indented",
        "&lt;b&gt; &#64;me",
        "`",
        "\\",
        "a|b@c.example ` www.d.example",
        "` a `",
        "line\n\n# another\r\n<b>",
        "\u202eevil\u200b",
    ],
)
def test_nothing_from_a_file_is_markup(text: str) -> None:
    page = seen(render(of(text)))
    assert page.elements.count("code") >= PLAIN.elements.count("code") - 1
    assert [each for each in page.elements if each != "code"] == [
        each for each in PLAIN.elements if each != "code"
    ]
    assert "@" not in page.text
    assert not re.search(r"#\d", page.text)
    assert Style().safe(text).strip() in page.whole


@given((st.text() | st.text("@#<>|`\\*_[]()!&;:/w.-+=1 \n", max_size=20)).filter(str.strip))
@example("www.a.example")
@example("a  b")
def test_no_text_from_a_file_is_markup(text: str) -> None:
    page = seen(render(of(text)))
    assert [each for each in page.elements if each != "code"] == [
        each for each in PLAIN.elements if each != "code"
    ]
    assert not re.search(r"@\w|#\d", page.text)


def test_the_same_finding_over_many_files_is_told_once() -> None:
    text = render(report(*(renamed(LOST, f"{n}.gguf") for n in range(20))))
    assert text.count("KV103 window-lost") == 1
    assert "- **files** `20 of 20`\n" in text

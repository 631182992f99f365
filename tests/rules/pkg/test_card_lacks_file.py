from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.formats.readme import parse_card
from gguf_audit.gguf import Card
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.card_lacks_file import check
from rule_subjects import LLAMA, SETTINGS, model

LIST = "---\nlicense: mit\n---\n| [X-Q8_0.gguf](../blob/main/X-Q8_0.gguf) | X-Q4_K_M.gguf |\n"


def said(name: str, text: str | None) -> list[Outcome]:
    card: Card | None = None if text is None else parse_card(text)
    subject = model(LLAMA)
    named = replace(subject.gguf, name=name)
    return list(check(replace(subject, gguf=named, load_card=lambda: card), SETTINGS))


def test_fires_where_the_list_lacks_the_file() -> None:
    assert said("repo/X-Q2_K.gguf", LIST) == [
        Hit(
            message="needs X-Q2_K.gguf on the card beside it, which lists 2 other quants",
            where=Where(),
            expected="X-Q2_K.gguf",
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("X-Q8_0.gguf", LIST),
        ("x-q8_0.gguf", LIST),
        ("X-Q8_0-00001-of-00002.gguf", LIST),
        # another model, an example, no list, a table of labels, no card, no label
        ("Y-Q2_K.gguf", LIST),
        ("X-Q2_K.gguf", "---\n---\nllama-cli -m X-Q4_K_M.gguf"),
        ("X-Q2_K.gguf", "---\n---\nquants of X"),
        ("X-Q2_K.gguf", LIST + "| Q2_K | 3 GB |"),
        ("X-Q2_K.gguf", None),
        ("X-Q2_K.gguf", "X-Q8_0.gguf X-Q4_0.gguf"),
        ("X.gguf", LIST),
    ],
)
def test_silent_about_what_is_listed_or_no_list(name: str, text: str | None) -> None:
    assert said(name, text) == []

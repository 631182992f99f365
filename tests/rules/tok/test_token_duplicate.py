from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.token_duplicate import check
from rule_subjects import LLAMA, SETTINGS, model, vocabulary


def said(texts: list[str], kind: str = "gpt2") -> list[Outcome]:
    return list(check(model(vocabulary(texts, kind=kind)), SETTINGS))


def test_silent() -> None:
    assert said(["a", "b", "A"]) == []
    # llama.cpp gives each empty one a name of its own.
    assert said(["a", "", ""]) == []
    assert said(["a", "a"], "none") == []
    assert list(check(model(LLAMA), SETTINGS)) == []


@pytest.mark.parametrize(
    ("texts", "many", "second", "text", "first"),
    [
        (["a", "b", "a"], "1 of 3", 2, "a", 0),
        (["a", "", "", "<|pad|>", "<|pad|>", "<|pad|>"], "2 of 6", 4, "<|pad|>", 3),
    ],
)
def test_fires(texts: list[str], many: str, second: int, text: str, first: int) -> None:
    assert said(texts) == [
        Hit(
            message=f"needs different texts for all tokens, {many} repeat another, first id "
            f"{second}: {text!r}, as id {first}: llama.cpp aborts",
            where=Where(key="tokenizer.ggml.tokens"),
            expected="different texts",
            actual=text,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]

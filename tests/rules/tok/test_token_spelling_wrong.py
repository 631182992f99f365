from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.token_spelling_wrong import ENOUGH, check
from rule_subjects import SETTINGS, model, vocabulary

PIECES = ["<s>", *(f"\u2581{index}" for index in range(ENOUGH))]
BYTES = ["<s>", *(f"\u0120{index}" for index in range(ENOUGH))]
MODEL = "tokenizer.ggml.model"


def said(texts: list[str], kind: str, pre: str = "default") -> list[Outcome]:
    return list(check(model(vocabulary(texts, {"pre": pre}, kind=kind)), SETTINGS))


@pytest.mark.parametrize(
    ("texts", "kind", "pre"),
    [
        (PIECES, "llama", "default"),
        (BYTES, "gpt2", "gpt-2"),
        # Byte pairs that are spelled like pieces.
        (PIECES, "gpt2", "gemma4"),
        (PIECES, "gemma4", "default"),
        (PIECES, "bert", "default"),
        # Both, or too few to tell.
        ([*PIECES, "\u0120a"], "gpt2", "gpt-2"),
        (PIECES[:-1], "gpt2", "gpt-2"),
    ],
)
def test_silent(texts: list[str], kind: str, pre: str) -> None:
    assert said(texts, kind, pre) == []


@pytest.mark.parametrize(
    ("texts", "kind", "meant", "begin", "own"),
    [
        (PIECES, "gpt2", "llama", "'\u2581'", "'\u0120'"),
        (BYTES, "llama", "gpt2", "'\u0120'", "'\u2581'"),
    ],
)
def test_fires(texts: list[str], kind: str, meant: str, begin: str, own: str) -> None:
    assert said(texts, kind) == [
        Hit(
            message=f"needs {MODEL} {meant!r} for its tokens, 16 of 17 begin with {begin} and none "
            f"with {own}: {MODEL} is {kind!r}",
            where=Where(key=MODEL),
            expected=meant,
            actual=kind,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]

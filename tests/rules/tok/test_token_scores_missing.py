from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok._vocabulary import SCORES as KEY
from gguf_audit_rules.tok.token_scores_missing import check
from rule_subjects import LLAMA, SETTINGS, model, tokens


@pytest.mark.parametrize("kind", ["gpt2", "bert", "rwkv", "none"])
def test_silent_for_vocabularies_that_need_none(kind: str) -> None:
    assert list(check(model(tokens(3, kind)), SETTINGS)) == []


@pytest.mark.parametrize("kind", ["llama", "t5", "plamo2"])
def test_silent_where_they_are(kind: str) -> None:
    assert list(check(model({**tokens(3, kind), KEY: [0.0] * 3}), SETTINGS)) == []


def test_silent_without_tokens() -> None:
    assert list(check(model({**LLAMA, "tokenizer.ggml.model": "llama"}), SETTINGS)) == []


@pytest.mark.parametrize("kind", ["llama", "t5", "plamo2"])
def test_fires(kind: str) -> None:
    assert list(check(model(tokens(3, kind)), SETTINGS)) == [
        Hit(
            message=f"needs a score for each token of its {kind!r} vocabulary, {KEY} is absent: "
            "llama.cpp takes 0 for all",
            where=Where(key=KEY),
            expected="one score per token",
            actual=None,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(hint="no metadata tool can add a list"),
        )
    ]

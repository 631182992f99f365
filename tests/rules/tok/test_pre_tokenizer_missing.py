from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.pre_tokenizer_missing import KEY, check
from rule_subjects import LLAMA, SETTINGS, model, offset, tokens

TENSOR = [("token_embd.weight", (64, 4), "F32")]


@pytest.mark.parametrize("kind", ["llama", "bert", "t5", "rwkv", "plamo2", "gemma4", "none"])
def test_silent_for_vocabularies_that_do_not_use_it(kind: str) -> None:
    assert list(check(model(tokens(4, kind), TENSOR), SETTINGS)) == []


@pytest.mark.parametrize("name", ["llama-bpe", "default"])
def test_silent_where_the_file_names_one(name: str) -> None:
    assert list(check(model({**tokens(4), KEY: name}, TENSOR), SETTINGS)) == []


def test_silent_without_a_vocabulary() -> None:
    assert list(check(model(LLAMA, TENSOR), SETTINGS)) == []


@pytest.mark.parametrize(
    ("tensors", "level"),
    [(TENSOR, Severity.ERROR), ([], Severity.INFO)],
    ids=["model", "vocabulary"],
)
def test_fires(tensors: list[tuple[str, tuple[int, int], str]], level: Severity) -> None:
    assert list(check(model(tokens(4), tensors), SETTINGS)) == [
        Hit(
            message=f"needs a pre-tokenizer for its BPE vocabulary, {KEY} is absent: "
            "llama.cpp splits text by 'default'",
            where=Where(key=KEY),
            expected="the name of the reference's splitter",
            actual="default",
            origin=Origin.RUNTIME_DEFAULT,
            level=level,
            repair=Reconvert(
                hint="or gguf-new-metadata --pre-tokenizer NAME, if you know the name"
            ),
        )
    ]


def test_fires_for_an_empty_name() -> None:
    subject = model({**tokens(4), KEY: ""}, TENSOR)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs a pre-tokenizer for its BPE vocabulary, {KEY} is empty: "
            "llama.cpp splits text by 'default'",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            expected="the name of the reference's splitter",
            actual="default",
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(
                hint="or gguf-new-metadata --pre-tokenizer NAME, if you know the name"
            ),
        )
    ]

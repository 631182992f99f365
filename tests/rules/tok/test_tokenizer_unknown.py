from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.runtime.pre_tokenizers import SPLITTERS
from gguf_audit.where import Where
from gguf_audit_rules.tok.tokenizer_unknown import check
from rule_subjects import LLAMA, SETTINGS, model, offset, tokens

PRE, MODEL = "tokenizer.ggml.pre", "tokenizer.ggml.model"


@pytest.mark.parametrize("name", ["", *SPLITTERS])
def test_silent_for_every_name_that_llama_cpp_knows(name: str) -> None:
    assert list(check(model({**tokens(4), PRE: name}), SETTINGS)) == []


@pytest.mark.parametrize("kind", ["llama", "bert", "t5", "rwkv", "plamo2", "gemma4", "none"])
def test_silent_for_vocabularies_that_do_not_use_one(kind: str) -> None:
    assert list(check(model({**tokens(4, kind), PRE: "nonsense"}), SETTINGS)) == []


def test_silent_without_a_vocabulary() -> None:
    assert list(check(model(LLAMA), SETTINGS)) == []


@pytest.mark.parametrize("kind", ["gpt2", "hybriddna", "whitespace"])
def test_fires_for_a_splitter(kind: str) -> None:
    subject = model({**tokens(4, kind), PRE: "qwen9"})
    assert list(check(subject, SETTINGS)) == [hit(PRE, "splitter", "qwen9", offset(subject, PRE))]


def test_fires_for_a_tokenizer() -> None:
    subject = model({**tokens(4, "tiktoken"), PRE: "nonsense"})
    assert list(check(subject, SETTINGS)) == [
        hit(MODEL, "tokenizer", "tiktoken", offset(subject, MODEL))
    ]


def hit(key: str, what: str, name: str, place: int) -> Hit:
    return Hit(
        message=f"needs a {what} that llama.cpp knows, {key} is {name!r}: "
        "build b11434 refuses the file",
        where=Where(key=key, offset=place),
        expected=f"a {what} of llama.cpp's",
        actual=name,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(hint="with the converter of the llama.cpp that shall run the file"),
    )

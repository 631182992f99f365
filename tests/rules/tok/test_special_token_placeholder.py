from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.special_token_placeholder import check
from rule_subjects import LLAMA, SETTINGS, model, vocabulary

TEXTS = ["a", "[PAD1]", "<dummy00002>", "<unk>", "", "<|endoftext|>", "[PAD]"]


def said(kind: str = "gpt2", **others: FieldValue) -> list[Outcome]:
    return list(check(model(vocabulary(TEXTS, others, kind=kind)), SETTINGS))


def u32(value: int) -> FieldValue:
    return (ValueType.UINT32, value)


def test_silent() -> None:
    assert said() == []
    # Real tokens, however much they look like padding; ids out of range are TOK003's.
    assert said(eos_token_id=u32(5), unknown_token_id=u32(3), padding_token_id=u32(6)) == []
    assert said(eos_token_id=u32(99)) == []
    assert list(check(model({**LLAMA, "tokenizer.ggml.eos_token_id": u32(1)}), SETTINGS)) == []


@pytest.mark.parametrize(
    ("kind", "name", "key", "id_", "level"),
    [
        ("gpt2", "eos", "eos_token_id", 1, Severity.ERROR),
        ("gpt2", "eot", "eot_token_id", 2, Severity.ERROR),
        ("gpt2", "eos", "eos_token_id", 4, Severity.ERROR),
        # Byte pairs don't begin with bos unless they say so; pieces do.
        ("gpt2", "bos", "bos_token_id", 1, Severity.INFO),
        ("llama", "bos", "bos_token_id", 1, Severity.ERROR),
        ("gpt2", "pad", "padding_token_id", 1, Severity.INFO),
    ],
)
def test_fires(kind: str, name: str, key: str, id_: int, level: Severity) -> None:
    assert said(kind, **{key: u32(id_)}) == [
        Hit(
            message=f"needs a real token for {name}, tokenizer.ggml.{key} is {id_}: {TEXTS[id_]!r}",
            where=Where(key=f"tokenizer.ggml.{key}"),
            expected="a token that the model knows",
            actual=TEXTS[id_],
            origin=Origin.KEY,
            level=level,
            repair=Reconvert(hint="or gguf-new-metadata --special-token-by-id, if you know the id"),
            also=("tokenizer.ggml.tokens",),
        )
    ]

from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.special_id_out_of_range import check
from rule_subjects import LLAMA, SETTINGS, model, offset, tokens

BOS, EOS = "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"
PAD, FIM = "tokenizer.ggml.padding_token_id", "tokenizer.ggml.fim_pre_token_id"
NONE = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("gpt2", {}),
        ("gpt2", {BOS: 0, EOS: 7, PAD: 7, FIM: 7}),
        # bos is eos.
        ("gpt2", {BOS: 3, EOS: 3}),
        # "None" where llama.cpp has no default.
        ("gpt2", {PAD: NONE, FIM: NONE}),
        ("rwkv", {BOS: NONE}),
        # Flags and counts are no ids.
        ("gpt2", {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.token_type_count": 99}),
        ("gpt2", {"tokenizer.ggml.bos_token_id.note": 99, "other.bos_token_id": 99}),
        ("gpt2", {BOS: "8", EOS: True}),
    ],
)
def test_silent(kind: str, ids: dict[str, FieldValue]) -> None:
    assert list(check(model({**tokens(8, kind), **ids}), SETTINGS)) == []


def test_silent_without_tokens() -> None:
    keys: dict[str, FieldValue] = {**LLAMA, "tokenizer.ggml.model": "gpt2", BOS: 5}
    assert list(check(model(keys), SETTINGS)) == []


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("gpt2", FIM, 8),
        ("gpt2", BOS, 4096),
        ("gpt2", PAD, -1),
        # llama.cpp takes a default of its own instead of "none".
        ("gpt2", EOS, NONE),
        ("llama", BOS, NONE),
        ("t5", PAD, NONE),
    ],
)
def test_fires_for_the_last_id(kind: str, key: str, value: int) -> None:
    subject = model({**tokens(8, kind), "tokenizer.ggml.eot_token_id": 7, key: value})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs an id below 8, {key} is {value}",
            where=Where(key=key, offset=offset(subject, key)),
            expected="0 to 7",
            actual=value,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="or gguf-new-metadata --special-token-by-id, with the right id"),
        )
    ]


def test_every_id_is_looked_at() -> None:
    keys = [
        hit.where.key
        for hit in check(model({**tokens(8), BOS: 8, EOS: 1, FIM: 9}), SETTINGS)
        if isinstance(hit, Hit)
    ]
    assert keys == [BOS, FIM]


@pytest.mark.parametrize(
    ("rows", "also"),
    [(9, ("tokenizer.ggml.tokens",)), (8, ())],
    ids=["the tokens are too few", "the id is wrong"],
)
def test_the_embedding_says_what_is_wrong(rows: int, also: tuple[str, ...]) -> None:
    subject = model({**tokens(2), EOS: 8}, [("token_embd.weight", (64, rows), "F32")])
    assert [hit.also for hit in check(subject, SETTINGS) if isinstance(hit, Hit)] == [also]

from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.vocabulary_type_wrong import CHARSMAP, check
from rule_subjects import LLAMA, SETTINGS, model, offset, tokens

GGML = "tokenizer.ggml."
STRINGS: FieldValue = (ValueType.STRING, ["a b"])
SOUND: dict[str, FieldValue] = {
    **tokens(3),
    f"{GGML}pre": "gpt-2",
    f"{GGML}token_type_count": 2,
    f"{GGML}scores": [0.0] * 3,
    f"{GGML}token_type": [1] * 3,
    f"{GGML}merges": STRINGS,
    f"{GGML}bos_token_id": 1,
    f"{GGML}middle_token_id": 1,
    f"{GGML}add_bos_token": True,
    f"{GGML}normalizer.strip_accents": False,
    f"{GGML}suppress_tokens": [1],
}


def test_silent_for_the_right_types() -> None:
    assert list(check(model(SOUND), SETTINGS)) == []
    assert list(check(model(LLAMA), SETTINGS)) == []


@pytest.mark.parametrize(
    "read_otherwise",
    [
        # llama.cpp takes whole scores too, and never reads these.
        {f"{GGML}scores": [0, 0, 0]},
        {f"{GGML}cls_token_id": "a"},
        {f"{GGML}image_token_id": "a"},
        {CHARSMAP: [1]},
        {f"{GGML}model": "llama", f"{GGML}merges": 1},
        {f"{GGML}model": "none", f"{GGML}tokens": 1, f"{GGML}eos_token_id": "a"},
    ],
)
def test_silent_for_what_llama_cpp_takes_or_never_reads(
    read_otherwise: dict[str, FieldValue],
) -> None:
    assert list(check(model({**SOUND, **read_otherwise}), SETTINGS)) == []


WRONG: list[tuple[str, FieldValue, str, str]] = [
    ("model", 1, "string", "uint32"),
    ("pre", (ValueType.STRING, ["gpt-2"]), "string", "an array of string"),
    ("token_type_count", (ValueType.UINT8, 2), "uint32", "uint8"),
    ("tokens", (ValueType.UINT32, [1, 2, 3]), "an array of string", "an array of uint32"),
    ("tokens", "abc", "an array of string", "string"),
    ("scores", 0.0, "an array of float32 or int32", "float32"),
    (
        "scores",
        (ValueType.UINT8, [0, 0, 0]),
        "an array of float32 or int32",
        "an array of uint8",
    ),
    ("token_type", (ValueType.UINT32, [1, 1, 1]), "an array of int32", "an array of uint32"),
    ("merges", (ValueType.INT32, [1]), "an array of string", "an array of int32"),
    ("suppress_tokens", 1, "an array of int32", "uint32"),
    ("bos_token_id", "1", "uint32", "string"),
    ("eos_token_id", (ValueType.INT32, 1), "uint32", "int32"),
    ("padding_token_id", (ValueType.UINT64, 1), "uint32", "uint64"),
    ("middle_token_id", (ValueType.UINT32, [1]), "uint32", "an array of uint32"),
    ("add_bos_token", 1, "bool", "uint32"),
    ("add_space_prefix", "true", "bool", "string"),
    ("normalizer.lowercase", 0, "bool", "uint32"),
]


@pytest.mark.parametrize(("name", "value", "wanted", "found"), WRONG)
def test_fires(name: str, value: FieldValue, wanted: str, found: str) -> None:
    key = GGML + name
    subject = model({**SOUND, key: value})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs {wanted}, {key} is {found}: llama.cpp refuses the file",
            where=Where(key=key, offset=offset(subject, key)),
            expected=wanted,
            actual=found,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="or write the key again with the right type"),
        )
    ]


def test_fires_for_a_charsmap_of_a_unigram_vocabulary() -> None:
    wrong = model({**tokens(3, "t5"), CHARSMAP: (ValueType.INT32, [1])})
    assert [hit.where.key for hit in check(wrong, SETTINGS) if isinstance(hit, Hit)] == [CHARSMAP]
    right = model({**tokens(3, "t5"), CHARSMAP: (ValueType.UINT8, [1])})
    assert list(check(right, SETTINGS)) == []


def test_every_key_is_looked_at() -> None:
    subject = model({**SOUND, f"{GGML}eos_token_id": "2", f"{GGML}tokens": [1, 2]})
    keys = [hit.where.key for hit in check(subject, SETTINGS) if isinstance(hit, Hit)]
    assert keys == [f"{GGML}eos_token_id", f"{GGML}tokens"]

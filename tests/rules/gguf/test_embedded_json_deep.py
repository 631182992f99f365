from __future__ import annotations

import json

import pytest

from gguf_audit.rule import Hit, RemoveKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.gguf.embedded_json_deep import check
from rule_subjects import SETTINGS, model

KEYS: dict[str, FieldValue] = {"general.architecture": "llama", "general.name": "x"}
KEY = "tokenizer.huggingface.json"


@pytest.mark.parametrize(
    "document",
    [
        json.dumps({"model": {"vocab": {"[" * 100: 0, '"' + "{" * 100: 1}}}),
        "[" * 64 + "]" * 64,
        "no JSON at all",
        5,
    ],
    ids=["brackets-in-texts", "at-the-limit", "text", "number"],
)
def test_silent_for_what_can_be_read(document: FieldValue) -> None:
    assert list(check(model({**KEYS, KEY: document}), SETTINGS)) == []


@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_fires_for_what_is_too_deep(bracket: str) -> None:
    subject = model({**KEYS, KEY: bracket * 200_000})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs at most 64 brackets in each other, {KEY} has 200,000",
            where=Where(key=KEY, offset=subject.gguf.fields[KEY].offset),
            expected=64,
            actual=200_000,
            unit="level",
            level=Severity.ERROR,
            repair=RemoveKey(key=KEY),
        )
    ]

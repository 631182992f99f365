from __future__ import annotations

import pytest

from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue, TensorSpec
from gguf_audit.where import Where
from gguf_audit_rules.gguf.not_utf8 import check
from rule_subjects import SETTINGS, model

KEYS: dict[str, FieldValue] = {"general.architecture": "llama", "general.a": 1}


@pytest.mark.parametrize("text", ["", "Modell für alle", "模型 🤖", "\u202e\0", "\ufffd", "\x80"])
def test_silent_for_text(text: str) -> None:
    keys: dict[str, FieldValue] = {
        **KEYS,
        "general.name": text,
        f"acme.{text}": True,
        # Half a character.
        "tokenizer.ggml.tokens": ["\udcf0\udc9f"],
    }
    subject = model(keys, [TensorSpec("ä", (32,))])
    assert list(check(subject, SETTINGS)) == []


def test_fires_for_keys() -> None:
    subject = model({**KEYS, "acme.\udcff": 1, "b": 1, "acme.\udced\udca0\udc80": 1})
    first = subject.gguf.fields["acme.\udcff"]
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs keys in UTF-8, 'acme.\\xff', 'acme.\\xed\\xa0\\x80' have bytes that are "
            "none",
            where=Where(file="model.gguf", key="acme.\udcff", offset=first.offset),
            expected=0,
            actual=2,
            unit="name",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_the_last_tensor() -> None:
    tensors = [TensorSpec("a", (32,)), TensorSpec("b\udc80", (32,))]
    subject = model(KEYS, tensors)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs tensor names in UTF-8, 'b\\x80' has bytes that are none",
            where=Where(
                file="model.gguf",
                tensor="b\udc80",
                offset=subject.gguf.tensors["b\udc80"].info_offset,
            ),
            expected=0,
            actual=1,
            unit="name",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(
    "key", ["general.name", "general.license", "general.description", "tokenizer.chat_template"]
)
def test_fires_for_a_text(key: str) -> None:
    subject = model({**KEYS, key: "ab\udcff\udcfe"})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs texts in UTF-8, {key} has bytes that are none",
            where=Where(file="model.gguf", key=key, offset=subject.gguf.fields[key].offset),
            expected=0,
            actual=1,
            unit="text",
            level=Severity.WARNING,
            repair=Reconvert(),
        )
    ]


def test_a_hostile_file_gets_a_short_answer() -> None:
    subject = model({**KEYS, **{f"general.k{n}\udcff": 1 for n in range(5000)}})
    [hit] = check(subject, SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.message.endswith("'general.k4\\xff' (and 4995 more) have bytes that are none")

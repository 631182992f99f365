from __future__ import annotations

import pytest

from chat_subjects import CHATML, KEY
from gguf_audit.rule import Hit, RemoveKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.sec.template_misplaced import check
from rule_subjects import LLAMA, SETTINGS, model, offset


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (KEY, [CHATML], "an array"),
        (f"{KEY}.rag", [CHATML], "an array"),
        (KEY, 7, "a number"),
        (f"{KEY}\0x", [CHATML], "an array"),
    ],
)
def test_fires_for_a_value_that_is_no_text(key: str, value: FieldValue, kind: str) -> None:
    subject = model({**LLAMA, f"{KEY}.tool_use": CHATML, key: value})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs a text, {key} is {kind}",
            where=Where(key=key, offset=offset(subject, key)),
            level=Severity.ERROR,
            repair=RemoveKey(key=key),
        )
    ]


def test_silent_for_texts() -> None:
    keys: dict[str, FieldValue] = {
        KEY: CHATML,
        f"{KEY}.rag": "",
        "tokenizer.chat_templates": ["rag", "a{b}c"],
        "tokenizer.chat_template_of_mine": 1,
    }
    assert list(check(model({**LLAMA, **keys}), SETTINGS)) == []
    assert list(check(model(LLAMA), SETTINGS)) == []


@pytest.mark.parametrize("value", [CHATML, [CHATML], ["rag", "{# x #}"]])
def test_fires_for_a_template_among_names(value: FieldValue) -> None:
    names = "tokenizer.chat_templates"
    subject = model({**LLAMA, KEY: CHATML, names: value})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs names of templates, {names} holds a template itself",
            where=Where(key=names, offset=offset(subject, names)),
            level=Severity.ERROR,
            repair=RemoveKey(key=names),
        )
    ]

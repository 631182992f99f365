from __future__ import annotations

import pytest

from gguf_audit.evidence import Conversion
from gguf_audit.rule import Hit, NoEvidence, SetChatTemplate, Severity
from gguf_audit.subject import Absent
from gguf_audit.where import Where
from gguf_audit_rules.tpl.chat_template_lost import KEY, check
from rule_subjects import LLAMA, SETTINGS, checkpoint, conversion, offset

TEMPLATE = "{{ bos_token }}"


def beside(templates: dict[str, str] | Absent, stored: str | None = None) -> Conversion:
    keys = {} if stored is None else {KEY: stored}
    return conversion({**LLAMA, **keys}, reference=checkpoint(templates=templates))


@pytest.mark.parametrize(
    "templates",
    [
        {},
        {"default": ""},
        # Named templates alone: the converter writes no default.
        {"rag": TEMPLATE, "tool_use": TEMPLATE},
    ],
)
def test_silent_where_the_reference_has_no_default(templates: dict[str, str]) -> None:
    assert list(check(beside(templates), SETTINGS)) == []


@pytest.mark.parametrize("stored", [TEMPLATE, "another", "chatml"])
def test_silent_where_the_file_has_one(stored: str) -> None:
    assert list(check(beside({"default": TEMPLATE}, stored=stored), SETTINGS)) == []
    assert list(check(beside(Absent("not at hand"), stored=stored), SETTINGS)) == []


def test_no_evidence_where_the_reference_does_not_say() -> None:
    assert list(check(beside(Absent("the card doesn't hold it")), SETTINGS)) == [
        NoEvidence("whether the model has a chat template: the card doesn't hold it")
    ]


def test_fires_for_a_lost_template() -> None:
    assert list(check(beside({"rag": "r", "default": TEMPLATE}), SETTINGS)) == [
        Hit(
            message=f"needs the reference's chat template, {KEY} is absent: "
            "llama.cpp falls back to ChatML",
            where=Where(key=KEY),
            expected=TEMPLATE,
            level=Severity.ERROR,
            repair=SetChatTemplate(template=TEMPLATE),
        )
    ]


def test_fires_for_an_empty_template() -> None:
    subject = beside({"default": TEMPLATE}, stored="")
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs the reference's chat template, {KEY} is empty: "
            "llama.cpp falls back to ChatML",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            expected=TEMPLATE,
            actual="",
            level=Severity.ERROR,
            repair=SetChatTemplate(template=TEMPLATE),
        )
    ]

from __future__ import annotations

import pytest

from gguf_audit.chat import TEMPLATE as KEY
from gguf_audit.evidence import Conversion
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, SetChatTemplate, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tpl.chat_template_lost import check
from rule_subjects import LLAMA, SETTINGS, checkpoint, conversion, offset

TEMPLATE = "{{ bos_token }}"


def beside(templates: dict[str, str] | Absent, stored: FieldValue | None = None) -> Conversion:
    keys: dict[str, FieldValue] = {} if stored is None else {KEY: stored}
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


EMPTY: list[tuple[FieldValue, object, str]] = [
    ("", "", "empty: llama.cpp falls back to ChatML"),
    (" \n\t", " \n\t", "nothing but spaces: llama.cpp makes empty prompts"),
    (5, 5, "no string but 5: llama.cpp takes that for the template's text"),
    (True, True, "no string but True: llama.cpp takes that for the template's text"),
    ([TEMPLATE], "an array", "an array: llama.cpp leaves it out and falls back to ChatML"),
]


@pytest.mark.parametrize(("stored", "actual", "said"), EMPTY)
def test_fires_for_what_is_no_template(stored: FieldValue, actual: object, said: str) -> None:
    subject = beside({"default": TEMPLATE}, stored=stored)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs the reference's chat template, {KEY} is {said}",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            expected=TEMPLATE,
            actual=actual,
            level=Severity.ERROR,
            repair=SetChatTemplate(template=TEMPLATE),
        )
    ]

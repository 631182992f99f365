from __future__ import annotations

from chat_subjects import CHATML, KEY
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tpl.named_template_lost import check
from rule_subjects import LLAMA, SETTINGS, checkpoint, conversion

TEMPLATES = {"default": CHATML, "rag": "r", "tool_use": "t"}


def test_fires_for_each_that_is_gone() -> None:
    subject = conversion({**LLAMA, f"{KEY}.rag": "r"}, reference=checkpoint(templates=TEMPLATES))
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=(
                "needs the reference's chat template 'tool_use',"
                " tokenizer.chat_template.tool_use is absent"
            ),
            where=Where(key=f"{KEY}.tool_use"),
            expected="t",
            level=Severity.WARNING,
            repair=Reconvert(),
            also=(KEY,),
        )
    ]


def test_silent_where_none_is_gone() -> None:
    full = {**LLAMA, f"{KEY}.rag": "r", f"{KEY}.tool_use": "another"}
    for templates in (TEMPLATES, {"default": CHATML}, {}, {"rag": ""}):
        subject = conversion(full, reference=checkpoint(templates=templates))
        assert list(check(subject, SETTINGS)) == []


def test_silent_where_the_reference_does_not_say() -> None:
    subject = conversion(LLAMA, reference=checkpoint(templates=Absent("not at hand")))
    assert list(check(subject, SETTINGS)) == []

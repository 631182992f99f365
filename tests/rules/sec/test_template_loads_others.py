from __future__ import annotations

import pytest

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.template_loads_others import check
from rule_subjects import SETTINGS, offset


def test_fires_for_another_template() -> None:
    subject = chatting(f"{CHATML}\n" + "{% include 'x' %}")
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs a template that is whole, {KEY} has include 'x' in line 5",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            actual=["include 'x'"],
            level=Severity.ERROR,
        )
    ]


@pytest.mark.parametrize("template", [CHATML, "Include the file, import a module"])
def test_silent_for_what_chats_need(template: str) -> None:
    assert list(check(chatting(template), SETTINGS)) == []

from __future__ import annotations

import pytest

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.template_calls_outside import check
from rule_subjects import SETTINGS, offset


def test_fires_for_a_call_of_the_system() -> None:
    subject = chatting(f"{CHATML}\n" + "{{ os.popen() }}")
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs no call of the system, {KEY} has a call of os in line 5",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            actual=["a call of os"],
            level=Severity.ERROR,
        )
    ]


@pytest.mark.parametrize("template", [CHATML, "{% set os = 1 %}{{ os }}", "{{ m.open }} eval(1)"])
def test_silent_for_what_chats_need(template: str) -> None:
    assert list(check(chatting(template), SETTINGS)) == []

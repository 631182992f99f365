from __future__ import annotations

import pytest

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.template_reaches_internals import check
from rule_subjects import SETTINGS, offset


def test_fires_for_a_way_into_the_interpreter() -> None:
    subject = chatting(f"{CHATML}\n" + "{{ x.__class__ }}")
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs no way into the interpreter, {KEY} has the attribute __class__ in line 5",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            actual=["the attribute __class__"],
            level=Severity.ERROR,
        )
    ]


@pytest.mark.parametrize(
    "template", [CHATML, "Define __init__ and __class__", "{{ loop.index }}{{ message.name }}"]
)
def test_silent_for_what_chats_need(template: str) -> None:
    assert list(check(chatting(template), SETTINGS)) == []

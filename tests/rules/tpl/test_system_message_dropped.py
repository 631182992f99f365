from __future__ import annotations

from chat_subjects import CHATML, KEY, compared
from gguf_audit.rule import Hit, SetChatTemplate, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tpl.system_message_dropped import check
from rule_subjects import SETTINGS, offset

DROPPING = CHATML.replace("in messages", "in messages if m.role != 'system'")


def test_fires_where_the_reference_keeps_it() -> None:
    subject = compared(DROPPING, CHATML)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs the system message in the prompt, leaves it out",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            level=Severity.WARNING,
            repair=SetChatTemplate(template=CHATML),
        )
    ]


def test_silent_where_it_is_kept_or_the_reference_drops_it_too() -> None:
    assert list(check(compared(CHATML, CHATML), SETTINGS)) == []
    assert list(check(compared(DROPPING, DROPPING), SETTINGS)) == []
    assert list(check(compared("constant", CHATML), SETTINGS)) == []

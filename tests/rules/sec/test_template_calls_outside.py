from __future__ import annotations

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.template_calls_outside import check
from rule_subjects import SETTINGS, offset

WRONG = "{{ os.popen() }}"
SILENT = ("{% set os = 1 %}{{ os }}", "{{ m.open }} eval(1)")


def test_fires_in_every_template() -> None:
    # The default one is all right.
    key = f"{KEY}.rag"
    subject = chatting({KEY: CHATML, key: f"{CHATML}\n{WRONG}"})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs no call of the system, {key} has a call of os in line 5",
            where=Where(key=key, offset=offset(subject, key)),
            actual=["a call of os"],
            level=Severity.ERROR,
        )
    ]


def test_fires_in_an_array() -> None:
    found = list(check(chatting({KEY: ["{{ messages }}", WRONG]}), SETTINGS))
    assert [hit.level for hit in found if isinstance(hit, Hit)] == [Severity.ERROR]


def test_silent_for_what_chats_need() -> None:
    for template in (CHATML, *SILENT):
        assert list(check(chatting(template), SETTINGS)) == []

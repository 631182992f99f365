from __future__ import annotations

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.template_hidden_text import check
from rule_subjects import SETTINGS, offset

WRONG = "\U000e0041"
SILENT = ("\U0001f468\u200d\U0001f469", "\ttab\r\n")


def test_fires_in_every_template() -> None:
    # The default one is all right.
    key = f"{KEY}.rag"
    subject = chatting({KEY: CHATML, key: f"{CHATML}\n{WRONG}"})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs text that can be seen, {key} has invisible tag characters in line 5",
            where=Where(key=key, offset=offset(subject, key)),
            actual=["invisible tag characters"],
            level=Severity.ERROR,
        )
    ]


def test_fires_in_an_array() -> None:
    found = list(check(chatting({KEY: ["{{ messages }}", WRONG]}), SETTINGS))
    assert [hit.level for hit in found if isinstance(hit, Hit)] == [Severity.ERROR]


def test_silent_for_what_chats_need() -> None:
    for template in (CHATML, *SILENT):
        assert list(check(chatting(template), SETTINGS)) == []


def test_what_only_looks_encoded_is_a_warning() -> None:
    subject = chatting(CHATML + " A1" + "b0" * 120)
    [hit] = check(subject, SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.level is Severity.WARNING

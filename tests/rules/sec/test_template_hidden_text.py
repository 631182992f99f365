from __future__ import annotations

import pytest

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.template_hidden_text import check
from rule_subjects import SETTINGS, offset


def test_fires_for_text_that_nobody_sees() -> None:
    subject = chatting(f"{CHATML}\n" + "\U000e0041")
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs text that can be seen, {KEY} has invisible tag characters in line 5",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            actual=["invisible tag characters"],
            level=Severity.ERROR,
        )
    ]


@pytest.mark.parametrize("template", [CHATML, "\U0001f468\u200d\U0001f469", "\ttab\r\n"])
def test_silent_for_what_chats_need(template: str) -> None:
    assert list(check(chatting(template), SETTINGS)) == []


def test_what_only_looks_encoded_is_a_warning() -> None:
    subject = chatting(CHATML + " A1" + "b0" * 120)
    [hit] = check(subject, SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.level is Severity.WARNING

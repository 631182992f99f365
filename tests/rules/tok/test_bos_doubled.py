from __future__ import annotations

from chat_subjects import CHATML, KEY, chatting, vocabulary
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.bos_doubled import check
from rule_subjects import SETTINGS, offset


def test_fires_for_two_in_front() -> None:
    subject = chatting("{{ bos_token }}<s>" + CHATML)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs one BOS token in front of a prompt, has 2: '<s>'",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            expected=1,
            actual=2,
            unit="BOS token",
            level=Severity.WARNING,
        )
    ]


def test_silent_for_one_or_none() -> None:
    # llama.cpp takes the template's away before it adds its own.
    for adds in (False, True):
        for template in (CHATML, "{{ bos_token }}" + CHATML):
            subject = chatting(template, vocabulary(add_bos_token=adds))
            assert list(check(subject, SETTINGS)) == []

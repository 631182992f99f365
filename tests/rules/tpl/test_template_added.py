from __future__ import annotations

from chat_subjects import CHATML, KEY, compared
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tpl.template_added import check
from rule_subjects import SETTINGS, offset


def test_fires_where_the_reference_has_none() -> None:
    subject = compared(CHATML, {})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs no chat template as the reference has none, has one",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            level=Severity.INFO,
        )
    ]


def test_silent_where_one_is_there_or_nobody_knows() -> None:
    assert list(check(compared(CHATML, "another"), SETTINGS)) == []
    assert list(check(compared(CHATML, Absent("not at hand")), SETTINGS)) == []
    assert list(check(compared("", {}), SETTINGS)) == []

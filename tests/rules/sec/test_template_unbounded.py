from __future__ import annotations

import pytest
from msgspec.structs import replace

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.chat import Analysis, Chat, ChatTemplate, Exceeded
from gguf_audit.rule import Hit, NoEvidence, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.template_unbounded import check
from rule_subjects import SETTINGS, offset

DEEP = "it is nested too deeply, or calls itself without an end"


@pytest.mark.parametrize(
    ("template", "message", "actual"),
    [
        ("{{ 10 ** (10 ** 9) }}", "has 10**1000000000 in line 1", ["10**1000000000"]),
        ("{{ " + "(" * 20_000 + ")" * 20_000 + " }}", f"has none: {DEEP}", None),
        (
            "{% macro f(x) %}{% if x %}{{ f(x) }}{% endif %}{% endmacro %}{{ f(1) }}",
            f"has none: {DEEP}",
            None,
        ),
    ],
)
def test_fires_for_work_without_an_end(
    template: str, message: str, actual: list[str] | None
) -> None:
    subject = chatting(template)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs a template with bounds, {KEY} {message}",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            actual=actual,
            level=Severity.ERROR,
        )
    ]


def test_silent_for_bounded_work() -> None:
    for template in (CHATML, "{{ '=' * 40 }}", "{% for i in range(100) %}{% endfor %}", "{{"):
        assert list(check(chatting(template), SETTINGS)) == []


def test_what_nobody_looked_at_is_not_audited() -> None:
    unseen = Analysis(fault=Exceeded("it takes longer than 5 s"), renderings={})
    template = ChatTemplate(name="default", place=KEY, text=CHATML, analysis=unseen)
    subject = replace(chatting(CHATML), chat=Chat(templates=(template,)))
    assert list(check(subject, SETTINGS)) == [
        NoEvidence(f"{KEY} can't be looked at: it takes longer than 5 s", kind="limit")
    ]

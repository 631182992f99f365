from __future__ import annotations

from msgspec.structs import replace

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.chat import Analysis, Chat, ChatTemplate, Exceeded
from gguf_audit.rule import Hit, NoEvidence, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tpl.template_unparsable import check
from rule_subjects import SETTINGS, offset

BROKEN = "{{ messages[0]['content'"
MESSAGE = "TemplateSyntaxError: unexpected end of template, expected ','."


def test_fires_for_each_template_that_is_none() -> None:
    subject = chatting({KEY: BROKEN, f"{KEY}.rag": CHATML, f"{KEY}.tool_use": f"\n{BROKEN}"})
    assert [
        replace(hit, actual=None) for hit in check(subject, SETTINGS) if isinstance(hit, Hit)
    ] == [
        Hit(
            message=f"needs a template that Jinja can parse, {KEY} is none: {MESSAGE[21:]}, line 1",
            where=Where(key=KEY, offset=offset(subject, KEY)),
            level=Severity.ERROR,
        ),
        Hit(
            message=(
                f"needs a template that Jinja can parse, {KEY}.tool_use is none:"
                f" {MESSAGE[21:]}, line 2"
            ),
            where=Where(key=f"{KEY}.tool_use", offset=offset(subject, f"{KEY}.tool_use")),
            level=Severity.WARNING,
        ),
    ]


def test_silent_for_what_transformers_knows() -> None:
    tags = "{% generation %}{{ messages[0].content }}{% endgeneration %}"
    for text in (CHATML, "", tags, "{% for m in messages %}{% break %}{% endfor %}"):
        assert list(check(chatting(text), SETTINGS)) == []


def test_what_nobody_looked_at_is_not_audited() -> None:
    subject = chatting(CHATML)
    unseen = Analysis(fault=Exceeded("it takes longer than 5 s"), renderings={})
    template = ChatTemplate(name="default", place=KEY, text=CHATML, analysis=unseen)
    assert list(check(replace(subject, chat=Chat(templates=(template,))), SETTINGS)) == [
        NoEvidence(f"{KEY} can't be looked at: it takes longer than 5 s", kind="limit")
    ]

from __future__ import annotations

import pytest

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tpl.template_unrenderable import check
from rule_subjects import SETTINGS, offset

ALL = (
    "refuses a question and a question without a prompt to answer and a system message"
    " and several turns and an answer: 'Not today'"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('No system') }}{% endif %}"
    "{{ messages[0].content }}"
)
NO_FILTER = repr("TemplateAssertionError: No filter named 'magic'.")
NO_ELEMENT = "'UndefinedError: list object has no element 9'"
FAULTS = [
    (
        "{{ messages | magic }}",
        "needs to make a prompt of a question, fails: " + NO_FILTER,
        Severity.ERROR,
    ),
    (
        "{{ messages[0].content }}{% if messages|length > 1 %}{{ messages[9].content }}{% endif %}",
        "needs to make a prompt of a system message, fails: " + NO_ELEMENT,
        Severity.WARNING,
    ),
    (
        "{{ functions.items() }}",
        "makes no prompt where nobody gives it 'functions'",
        Severity.INFO,
    ),
    (
        "{{ raise_exception('Not today') }}",
        ALL,
        Severity.WARNING,
    ),
    (
        NO_SYSTEM,
        "refuses a system message: 'No system'",
        Severity.INFO,
    ),
]


@pytest.mark.parametrize(("template", "message", "level"), FAULTS)
def test_fires_for_a_prompt_that_is_not_made(template: str, message: str, level: Severity) -> None:
    subject = chatting(template)
    where = Where(key=KEY, offset=offset(subject, KEY))
    assert list(check(subject, SETTINGS)) == [Hit(message=message, where=where, level=level)]


#: For a model that sees: content is a list of parts, and no string.
IN_PARTS = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"


@pytest.mark.parametrize("template", [CHATML, IN_PARTS, "constant"])
def test_silent_where_plain_conversations_work(template: str) -> None:
    assert list(check(chatting(template), SETTINGS)) == []


def test_silent_where_only_tools_do_not_work() -> None:
    broken = "{{ messages[0].content }}{% if tools %}{{ tools | magic_word }}{% endif %}"
    # An unknown filter is found when the template is compiled, an unknown item is not.
    assert list(check(chatting(broken.replace("| magic_word", "[9].x.y")), SETTINGS)) == []

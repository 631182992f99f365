from __future__ import annotations

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tpl.template_tag_unknown import check
from rule_subjects import SETTINGS, offset


def test_fires_for_tags_of_jinja_alone() -> None:
    tags = "{% with x = 1 %}{{ x }}{% endwith %}{% block b %}{% endblock %}"
    subject = chatting({KEY: CHATML, f"{KEY}.rag": tags})
    key = f"{KEY}.rag"
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs tags that llama.cpp knows, has {% block %}, {% with %}",
            where=Where(key=key, offset=offset(subject, key)),
            actual=("block", "with"),
            level=Severity.WARNING,
        )
    ]
    [hit] = check(chatting(tags), SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.level is Severity.ERROR


def test_silent_for_tags_that_llama_cpp_knows() -> None:
    known = (
        "{% macro m(x) %}{{ x }}{% endmacro %}{% call m(1) %}y{% endcall %}"
        "{% filter upper %}z{% endfilter %}{% set s %}t{% endset %}"
        "{% for i in [1] %}{% continue %}{% endfor %}{% generation %}{% endgeneration %}"
    )
    assert list(check(chatting(known + CHATML), SETTINGS)) == []

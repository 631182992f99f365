from __future__ import annotations

import pytest

from chat_subjects import CHATML, KEY, chatting
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tpl.generation_prompt_missing import check
from rule_subjects import SETTINGS, offset

UNOPENED = CHATML.partition("{% if")[0]
#: The model's turn begins right behind the user's: there is nothing to open.
MISTRAL = (
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
)


def test_fires_where_nothing_opens_the_turn() -> None:
    subject = chatting(UNOPENED)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=(
                "needs '<|im_start|>assistant\\n' at the end of a prompt,"
                " add_generation_prompt makes no difference"
            ),
            where=Where(key=KEY, offset=offset(subject, KEY)),
            expected="<|im_start|>assistant\n",
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize("template", [CHATML, MISTRAL, "constant", "{{ x.y.z }}"])
def test_silent_where_the_turn_is_open(template: str) -> None:
    assert list(check(chatting(template), SETTINGS)) == []

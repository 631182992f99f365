from __future__ import annotations

import pytest
from msgspec.structs import replace

from chat_subjects import CHATML, KEY, compared
from gguf_audit.chat import CONVERSATIONS, Analysis, Chat, ChatTemplate, Exceeded
from gguf_audit.checkpoint import Checkpoint, TemplateFile
from gguf_audit.rule import Hit, NoEvidence, SetChatTemplate, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tpl.template_changed import check
from rule_subjects import SETTINGS, checkpoint, offset

LLAMA3 = (
    "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
TOOLS = "{% if tools %}{{ tools | tojson }}{% endif %}"
NONE = "{{ messages[0].content.x.y }}"

CHANGES = [
    # Another model's.
    (LLAMA3, CHATML, Severity.ERROR),
    # A text of somebody's own.
    ("You are a pirate.\n" + CHATML, CHATML, Severity.WARNING),
    (CHATML.replace("m.role", "'user'"), CHATML, Severity.WARNING),
    # No prompt where there should be one.
    (CHATML + "{% if messages|length > 1 %}" + NONE + "{% endif %}", CHATML, Severity.ERROR),
    # Tools that nobody tells the model of.
    (CHATML, TOOLS + CHATML, Severity.WARNING),
    # Repairs.
    (CHATML.replace("}}<|im_end|>\n", "}}<|im_end|>\n\n"), CHATML, Severity.INFO),
    (TOOLS + CHATML, CHATML, Severity.INFO),
    (CHATML.replace("assistant\n", "assistant\n<think>\n"), CHATML, Severity.INFO),
    (
        "Today: {{ strftime_now('%d %b %Y') }}" + CHATML,
        "Today: 26 Jul 2024" + CHATML,
        Severity.INFO,
    ),
    (CHATML, CHATML + NONE, Severity.INFO),
]


@pytest.mark.parametrize(("stored", "expected", "level"), CHANGES)
def test_fires_for_another_prompt(stored: str, expected: str, level: Severity) -> None:
    subject = compared(stored, expected)
    [hit] = check(subject, SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.level is level
    assert hit.where == Where(key=KEY, offset=offset(subject, KEY))
    assert hit.repair == SetChatTemplate(template=expected)


def test_the_difference_is_shown() -> None:
    stored = "You are a pirate.\n" + CHATML
    subject = compared(stored, CHATML)
    others = ", ".join(list(CONVERSATIONS)[1:])
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=(
                "needs the reference's prompt for a question, differs: +'You are a pirate.'"
                " (compared with org/model)"
            ),
            where=Where(key=KEY, offset=offset(subject, KEY)),
            expected=CHATML,
            actual=stored,
            level=Severity.WARNING,
            repair=SetChatTemplate(template=CHATML),
            consequences=(f"so does the prompt for {others}",),
        )
    ]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (CHATML, CHATML),
        (CHATML.replace("\n", "\r\n"), CHATML),
        # Written in another way.
        (CHATML.replace("m.role", "m['role'] | string"), CHATML),
        ("{# a comment #}" + CHATML, CHATML),
        # Both refuse.
        ("{{ raise_exception('no') }}", "{{ raise_exception('never') }}"),
        # What can't be parsed has a rule of its own.
        ("{{", CHATML),
    ],
)
def test_silent_for_equal_prompts(stored: str, expected: str) -> None:
    assert list(check(compared(stored, expected), SETTINGS)) == []


def test_silent_without_two_templates() -> None:
    assert list(check(compared("", CHATML), SETTINGS)) == []
    assert list(check(compared(CHATML, {}), SETTINGS)) == []
    assert list(check(compared(CHATML, {"tool_use": LLAMA3}), SETTINGS)) == []


def several(*texts: str) -> Checkpoint:
    files = tuple(
        TemplateFile(name="default", place=f"file {number}", text=text)
        for number, text in enumerate(texts)
    )
    return replace(checkpoint(templates={}), load_template_files=lambda: files)


def test_any_of_several_defaults_is_right() -> None:
    # chat_template.jinja and tokenizer_config.json may disagree.
    assert list(check(compared(CHATML, several(LLAMA3, CHATML)), SETTINGS)) == []
    [hit] = check(compared("You are a pirate.\n" + CHATML, several(LLAMA3, CHATML)), SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.message.endswith("(compared with file 1)")
    assert hit.level is Severity.WARNING


def test_what_nobody_looked_at_is_not_audited() -> None:
    subject = compared(CHATML, LLAMA3)
    unseen = Analysis(renderings={"a question": Exceeded("it takes longer than 5 s")})
    template = ChatTemplate(name="default", place="x", text="x", analysis=unseen)
    subject = replace(subject, expected_chat=Chat(templates=(template,)))
    assert list(check(subject, SETTINGS)) == [
        NoEvidence("a prompt for a question can't be made: it takes longer than 5 s", kind="limit")
    ]

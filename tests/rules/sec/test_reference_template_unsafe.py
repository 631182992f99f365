from __future__ import annotations

from msgspec.structs import replace

from chat_subjects import CHATML, compared
from gguf_audit.checkpoint import Checkpoint, TemplateFile
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.reference_template_unsafe import check
from rule_subjects import SETTINGS, checkpoint

EVIL = "{{ lipsum.__globals__ }}"


def holding(*files: tuple[str, str, str]) -> Checkpoint:
    found = tuple(TemplateFile(name=name, place=place, text=text) for name, place, text in files)
    return replace(checkpoint(templates={}), load_template_files=lambda: found)


def test_fires_for_a_template_beside_the_one_that_is_converted() -> None:
    reference = holding(
        ("default", "tokenizer_config.json", CHATML),
        ("tool_use", "additional_chat_templates/tool_use.jinja", EVIL),
    )
    assert list(check(compared(CHATML, reference), SETTINGS)) == [
        Hit(
            message=(
                "needs a template without what no chat needs, tool_use in"
                " additional_chat_templates/tool_use.jinja has the attribute __globals__ in line 1"
            ),
            where=Where(file="org/model/additional_chat_templates/tool_use.jinja"),
            actual=["the attribute __globals__"],
            level=Severity.ERROR,
        )
    ]


def test_fires_for_work_without_an_end() -> None:
    [hit] = check(compared(CHATML, holding(("default", "x", "{{ 10 ** (10 ** 9) }}"))), SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.level is Severity.ERROR


def test_fires_for_a_name_that_is_a_path() -> None:
    reference = holding(("../../evil", "tokenizer_config.json", CHATML))
    assert list(check(compared(CHATML, reference), SETTINGS)) == [
        Hit(
            message="needs names that make no path, tokenizer_config.json has '../../evil'",
            where=Where(file="org/model/tokenizer_config.json"),
            level=Severity.ERROR,
        )
    ]


def test_silent_for_what_is_told_of_the_file() -> None:
    assert list(check(compared(EVIL, holding(("default", "x", EVIL))), SETTINGS)) == []


def test_silent_for_what_chats_need() -> None:
    reference = holding(("default", "x", CHATML), ("tool_use", "y", CHATML + "tools"))
    assert list(check(compared(CHATML, reference), SETTINGS)) == []

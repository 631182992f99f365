from __future__ import annotations

import pytest
from msgspec.structs import replace

from chat_subjects import CHATML, ENDED, IDS, chatting, vocabulary
from gguf_audit.rule import Hit, SetSpecialId, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.end_token_not_final import check
from rule_subjects import SETTINGS

DONE = ENDED.replace("{end}", "<|done|>")


def hit(level: Severity) -> Hit:
    return Hit(
        message=(
            "needs '<|done|>' to end generation as the template prints it after an answer,"
            " it doesn't"
        ),
        where=Where(key="tokenizer.ggml.eos_token_id"),
        expected=IDS["<|done|>"],
        actual=[IDS["</s>"], IDS["<|im_end|>"]],
        level=level,
        repair=SetSpecialId(name="eot", id=IDS["<|done|>"]),
        also=("tokenizer.chat_template",),
    )


@pytest.mark.parametrize(
    ("ends", "level"),
    [
        (None, Severity.WARNING),
        (frozenset({IDS["</s>"], IDS["<|done|>"]}), Severity.ERROR),
        # The publisher's own doing: the model may end its answers otherwise.
        (frozenset({IDS["</s>"]}), Severity.INFO),
    ],
)
def test_fires_for_a_token_that_ends_nothing(ends: frozenset[int] | None, level: Severity) -> None:
    settings = replace(SETTINGS, reference_ends=ends)
    assert list(check(chatting(DONE), settings)) == [hit(level)]


def test_silent_for_one_that_llama_cpp_knows_by_its_text() -> None:
    assert list(check(chatting(CHATML), SETTINGS)) == []


@pytest.mark.parametrize("name", ["eos", "eot", "eom"])
def test_silent_for_a_token_that_a_key_names(name: str) -> None:
    keys = vocabulary(**{f"{name}_token_id": IDS["<|done|>"]})
    assert list(check(chatting(DONE, keys), SETTINGS)) == []


@pytest.mark.parametrize(
    "template",
    [
        # The next speaker, plain text, a normal token, nothing, no answer at all.
        ENDED.replace("{end}", "\nNext: "),
        ENDED.replace("{end}\n", "[gone]"),
        "{% for m in messages %}{{ m.content }}{% endfor %}",
        "constant",
    ],
)
def test_silent_where_no_token_is_printed(template: str) -> None:
    assert list(check(chatting(template), SETTINGS)) == []


def test_silent_where_the_last_answer_ends_otherwise() -> None:
    # gpt-oss parts turns with one token and ends the last with another.
    template = (
        "{% for m in messages %}{{ m.content }}"
        "{% if loop.last and m.role == 'assistant' %}</s>{% else %}<|done|>{% endif %}{% endfor %}"
    )
    assert list(check(chatting(template), SETTINGS)) == []


def test_silent_where_the_end_stands_behind_another_marker() -> None:
    # Command R closes the text of an answer before it ends the turn.
    template = ENDED.replace("{end}", "<|stop|> text <|im_end|>")
    assert list(check(chatting(template), SETTINGS)) == []

from __future__ import annotations

import pytest

from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue, TensorSpec
from gguf_audit.where import Where
from gguf_audit_rules.gguf.hidden_characters import check
from rule_subjects import SETTINGS, model

KEYS: dict[str, FieldValue] = {"general.architecture": "llama", "general.name": "Good Model"}


def said(
    keys: dict[str, FieldValue], tensors: list[TensorSpec] | None = None
) -> list[tuple[Severity, str]]:
    outcomes = list(check(model({**KEYS, **keys}, tensors or []), SETTINGS))
    hits = [each for each in outcomes if isinstance(each, Hit)]
    return [(hit.level, hit.message) for hit in hits]


@pytest.mark.parametrize(
    "text",
    [
        "Modell für alle\n\tund mehr\r\n",
        "名前 👩\u200d💻",
        "\u0646\u0627\u0645\u200c\u0647\u0627 \u200f",
        "\u00a0\u2003\ufeff",
    ],
    ids=["lines", "joiners", "letters", "spaces"],
)
def test_silent_for_what_people_write(text: str) -> None:
    tokenizer: dict[str, FieldValue] = {
        "tokenizer.chat_template": "{{ '\x1b' }}\u202e",
        "tokenizer.ggml.tokens": ["\0", "\x1b"],
    }
    assert said({"general.description": text, **tokenizer}) == []


def test_silent_for_names_that_can_be_seen() -> None:
    # What is no UTF-8 is another rule's.
    keys: dict[str, FieldValue] = {"acme.größe x": 1, "acme.\udcff": 1, "acme.模型": 1}
    assert said(keys, [TensorSpec("größe\udcff", (32,))]) == []


@pytest.mark.parametrize(
    "hidden", ["\0", "\x1b", "\n", "\x9b", "\u202e", "\u200b", "\ufeff", "\xa0"]
)
def test_fires_for_a_key(hidden: str) -> None:
    message = f"needs keys without hidden characters, has {'general.b' + hidden!a}"
    assert said({"general.a": 1, f"general.b{hidden}": 1}) == [(Severity.ERROR, message)]


@pytest.mark.parametrize("hidden", ["\0", "\x1b", "\n", "\u2066", "\u200b"])
def test_fires_for_a_tensor(hidden: str) -> None:
    message = f"needs tensor names without hidden characters, has {'b' + hidden!a}"
    tensors = [TensorSpec("a", (32,)), TensorSpec(f"b{hidden}", (32,))]
    assert said({}, tensors) == [(Severity.ERROR, message)]


@pytest.mark.parametrize(
    ("key", "text", "level", "shown"),
    [
        ("general.name", "x\x1b[2J", Severity.ERROR, "U+001B"),
        ("general.name", "x\0", Severity.ERROR, "U+0000"),
        ("general.license", "x\u202ey", Severity.ERROR, "U+202E"),
        ("general.license", "x\x0b\x85y", Severity.WARNING, "U+000B, U+0085"),
        ("tokenizer.ggml.model", "gpt2\0", Severity.ERROR, "U+0000"),
        ("tokenizer.chat_template", "a\0b", Severity.ERROR, "U+0000"),
    ],
)
def test_fires_for_a_text(key: str, text: str, level: Severity, shown: str) -> None:
    message = f"needs text that can be seen, {key} has {shown}"
    assert said({key: text}) == [(level, message)]


def test_fires_at_the_place() -> None:
    subject = model({**KEYS, "general.a": "x", "general.b": "\x1b[2J"})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs text that can be seen, general.b has U+001B",
            where=Where(
                file="model.gguf", key="general.b", offset=subject.gguf.fields["general.b"].offset
            ),
            actual="\x1b[2J",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_what_is_odd_does_not_hide_what_is_hostile() -> None:
    texts: dict[str, FieldValue] = {f"general.{n}": "\x0b" for n in "abcdefg"}
    assert said({**texts, "general.z": "\x1b"}) == [
        (Severity.ERROR, "needs text that can be seen, general.z has U+001B"),
        (
            Severity.WARNING,
            (
                "needs text that can be seen, general.a has U+000B, as have "
                "general.b, general.c, general.d, general.e (and 2 more)"
            ),
        ),
    ]


def test_a_hostile_file_gets_a_short_answer() -> None:
    [(_, message)] = said({f"general.k{n}\n": 1 for n in range(5000)})
    assert message.endswith("'general.k4\\n' (and 4995 more)")

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.gguf import Card
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.card_disagrees import check
from rule_subjects import LLAMA, SETTINGS, model


def said(card: Card | None, **keys: str) -> list[Outcome]:
    stated = {f"general.{key.replace('_', '.')}": value for key, value in keys.items()}
    subject = model({"general.architecture": "llama", **LLAMA, **stated})
    return list(check(replace(subject, load_card=lambda: card), SETTINGS))


def test_fires_for_another_licence() -> None:
    assert said(Card(license="mit"), license="gemma") == [
        Hit(
            message="needs 'mit' as the card beside it has, general.license is 'gemma'",
            where=Where(key="general.license"),
            expected="mit",
            actual="gemma",
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize(
    "card",
    [
        Card(license="MIT"),
        Card(license="other", license_name="mit"),
        Card(),
        None,
    ],
)
def test_silent_where_they_agree_or_one_says_nothing(card: Card | None) -> None:
    assert said(card, license="mit") == []
    assert said(card) == []


def test_silent_where_both_say_other() -> None:
    assert said(Card(license="other", license_name="Qwen"), license="other") == []
    assert said(Card(license="qwen"), license="other", license_name="Qwen") == []

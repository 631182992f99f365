from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.gguf import Card
from gguf_audit.policies import Policy
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.provenance_missing import check
from rule_subjects import LLAMA, SETTINGS, model, policed

TENSORS = [("token_embd.weight", (64, 8), "F16")]
LICENSE = {"general.license": "mit"}
BASE = {"general.base_model.0.name": "x"}


def said(
    card: Card | None, *keys: dict[str, str], demanded: bool = False, tensors: bool = True
) -> list[Outcome]:
    stated = {key: value for each in keys for key, value in each.items()}
    subject = model(
        {"general.architecture": "llama", **LLAMA, **stated}, TENSORS if tensors else []
    )
    settings = policed(Policy(provenance=True)) if demanded else SETTINGS
    return list(check(replace(subject, load_card=lambda: card), settings))


def hit(message: str, key: str) -> Hit:
    return Hit(message=message, where=Where(key=key), level=Severity.INFO)


def test_fires_where_neither_file_nor_card_says_it() -> None:
    assert said(Card()) == [
        hit("needs a licence, the file and its card name none", "general.license"),
        hit(
            "needs the model that it was made from, the file and its card name none",
            "general.base_model.count",
        ),
    ]


def test_fires_without_a_card_where_a_policy_asks() -> None:
    [licence, base] = said(None, demanded=True)
    assert isinstance(licence, Hit)
    assert licence.message == "needs a licence, the file names none"
    assert isinstance(base, Hit)
    assert base.message == "needs the model that it was made from, the file names none"


@pytest.mark.parametrize(
    ("card", "keys"),
    [
        (Card(license="mit", base_models=("owner/x",)), ()),
        (Card(), (LICENSE, BASE)),
        (Card(), (LICENSE, {"general.source.url": "x"})),
        (Card(license="mit"), (BASE,)),
        (Card(license="mit", of_checkpoint=True), ()),
    ],
)
def test_silent_where_one_of_them_says_it(card: Card, keys: tuple[dict[str, str], ...]) -> None:
    assert said(card, *keys) == []
    assert said(card, *keys, demanded=True) == []


def test_silent_where_nobody_publishes() -> None:
    assert said(None) == []
    assert said(Card(), tensors=False) == []

"""The file and the card beside it name different licences.

## What it does
Compares `general.license` and `general.license.name` with `license` and `license_name` of the
model card (a `README.md` with front matter), whatever the case of their letters.

## Why it matters
Who has only the file goes by what it says, who finds it on the Hub by the card. One of them
uses the model under a licence that it isn't under.

## Fix
Correct the card, or convert again with the right card beside the checkpoint.

## Authority
gguf-py `gguf/metadata.py`; the Hub's model card specification.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

_KEY = "general.license"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit where file and card have no licence in common."""
    del settings
    card, says = model.load_card(), model.gguf.string(_KEY)
    if card is None or card.license is None or says is None:
        return
    file = {each.casefold() for each in (says, model.gguf.string(f"{_KEY}.name")) if each}
    if file & {each.casefold() for each in (card.license, card.license_name) if each}:
        return
    yield Hit(
        message=f"needs {card.license!r} as the card beside it has, {_KEY} is {says!r}",
        where=Where(key=_KEY),
        expected=card.license,
        actual=says,
        level=Severity.INFO,
    )


RULE = Rule(
    id="PKG007",
    name="card-disagrees",
    levels=(Severity.INFO,),
    check=OnModel(check),
    authority="gguf-py gguf/metadata.py; Hugging Face model card specification",
)

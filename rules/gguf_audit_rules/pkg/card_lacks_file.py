"""The card beside the file lists other quants, but not this one.

## What it does
Where the model card (a `README.md` with front matter) names at least two GGUF files of the same
model, looks for this file's name in it, or at least for its quantization. A card that gives an
example, or none at all, isn't a list.

## Why it matters
People choose from the list: what isn't on it isn't found, and what was forgotten on it is often
an upload that nobody has looked at.

## Fix
Add it to the card.

## Authority
The Hub's model card specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.naming import label_of, model_of
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

#: Files from which on a card is a list.
_LIST = 2


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit where a card that is a list lacks the file."""
    del settings
    card, label = model.load_card(), label_of(model.gguf.name)
    if card is None or label is None or label.text in card.labels:
        return
    name = re.split(r"[/\\:]", model.gguf.name)[-1]
    same = {each for each in card.files if model_of(each) == model_of(name)}
    if name in same or len(same) < _LIST:
        return
    yield Hit(
        message=f"needs {name} on the card beside it, which lists {len(same)} other quants",
        where=Where(),
        expected=name,
        level=Severity.INFO,
    )


RULE = Rule(
    id="PKG009",
    name="card-lacks-file",
    levels=(Severity.INFO,),
    check=OnModel(check),
    authority="Hugging Face model card specification",
)

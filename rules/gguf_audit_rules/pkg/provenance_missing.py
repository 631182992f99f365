"""Neither the file nor its card says what it was made of, or under which licence it is.

## What it does
Where a model card (a `README.md` with front matter) stands beside the file, or a policy asks with
`provenance`, looks for a licence (`general.license`, `license` of the card) and for the model that
it was made from (`general.base_model.*`, `general.source.*`, `base_model` of the card). One of the
two places is enough. Beside a checkpoint's own `config.json` the origin is plain.

## Why it matters
Without a licence nobody may use it; without an origin nobody can check it, and `--against auto`
has nothing to look for.

## Fix
Name both in the card. The converter copies them from the checkpoint's card into the file.

## Authority
gguf-py `gguf/metadata.py: Metadata.apply_metadata_heuristic`; the Hub's model card specification
(`license`, `base_model`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

_LICENSE = "general.license"
_ORIGINS = ("general.base_model.", "general.source.")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit for a missing licence and one for a missing origin."""
    if not model.gguf.tensors:
        return
    demanded = settings.policy is not None and settings.policy.provenance
    card = model.load_card()
    if card is None and not demanded:
        return
    where = "the file" if card is None else "the file and its card"
    if _LICENSE not in model.gguf.fields and (card is None or card.license is None):
        yield _hit(f"needs a licence, {where} name none", _LICENSE)
    known = any(key.startswith(_ORIGINS) for key in model.gguf.fields)
    if not known and (card is None or not (card.base_models or card.of_checkpoint)):
        yield _hit(
            f"needs the model that it was made from, {where} name none", "general.base_model.count"
        )


def _hit(message: str, key: str) -> Hit:
    message = message.replace("the file name ", "the file names ")
    return Hit(message=message, where=Where(key=key), level=Severity.INFO)


RULE = Rule(
    id="PKG006",
    name="provenance-missing",
    levels=(Severity.INFO,),
    check=OnModel(check),
    authority="gguf-py gguf/metadata.py; Hugging Face model card specification",
)

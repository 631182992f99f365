"""The card lists quants that aren't there.

## What it does
Where the model card of a folder (a `README.md` with front matter) names at least two GGUF files
of a model that is there, looks for a file of each quantization that it names, in the folder and
below. Shards and parts are files of it, and the case of letters doesn't matter. Names of other
models, and what links to other repositories lead to, are no part of the list.

Most of the list has to be there: whoever has fetched or made some of its files has lost none.
Under a policy with `provenance`, such as `--profile publish`, one file of it is enough, and the
card of a repository on the Hub is read too. Of what huggingface_hub has downloaded nothing is
said. A folder of this machine is looked through with those below it, but for hidden ones, whose
names begin with a dot. With more than 10,000 files and folders in them it isn't; that is told.

## Why it matters
People choose from the list, and find nothing behind what they have chosen: an upload that broke
off, or a file that was taken away.

## Fix
Upload the file, or take it off the card.

## Authority
The Hub's model card specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gguf_audit.evidence import FolderSubject, Settings
from gguf_audit.naming import Label, label_of, model_of
from gguf_audit.rule import Hit, OnFolder, Outcome, Rule, Severity
from gguf_audit.where import Where

#: Files named in a message before the rest is counted.
_SHOWN = 3
#: ``a.gguf.part1of2``, ``a.gguf-split-a``: parts of a file, as publishers cut it themselves.
_PART = re.compile(r"(?<=\.gguf)[.-].+$")

#: Model and quantization.
_Quant = tuple[str, Label]


def check(subject: FolderSubject, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all quants that a card lists and a folder lacks."""
    del settings
    card = subject.load_card()
    if card is None:
        return
    there = set(_quants(_PART.sub("", name) for name in subject.load_names()))
    models = {model for model, _ in there}
    lists = [
        {quant: name for quant, name in _quants(sorted(names)).items() if quant[0] in models}
        for names in card.listed.values()
    ]
    # The list of these files is the one that has most of them.
    none: dict[_Quant, str] = {}
    quants = max(lists, key=lambda each: len(each.keys() & there), default=none)
    missing = [name for quant, name in quants.items() if quant not in there]
    found = len(quants) - len(missing)
    if not missing or found < (1 if subject.published else len(missing) + 1):
        return
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    yield Hit(
        message=(
            f"needs {', '.join(missing[:_SHOWN])}{more} as its card lists, {subject.folder} has "
            f"{found} of {len(quants)} quants"
        ),
        where=Where(file=f"{subject.folder}/README.md"),
        expected=missing,
        level=Severity.INFO,
    )


def _quants(names: Iterable[str]) -> dict[_Quant, str]:
    """Return a file's name for each quantization; of equal ones the first."""
    found: dict[_Quant, str] = {}
    for name in names:
        label = label_of(name)
        if label is not None and name.endswith(".gguf"):
            found.setdefault((model_of(name), label), name)
    return found


RULE = Rule(
    id="PKG015",
    name="listed-file-missing",
    levels=(Severity.INFO,),
    check=OnFolder(check),
    authority="Hugging Face model card specification",
)

"""The name says that the file is one of several shards, the file doesn't.

## What it does
Looks for `-00001-of-00003` at the end of the name of a file that has no `split.count`. llama.cpp
goes by the key alone and takes the file for a whole model.

## Why it matters
Download tools fetch all files that the name promises, and people wait for them; or the others
are there and are never read, and what is loaded lacks their tensors.

## Fix
Rename a file that is whole. Parts that were cut by hand are joined with `cat`, shards of
gguf-split with `llama-gguf-split --merge`.

## Authority
llama.cpp b11434, `src/llama-model-loader.cpp: llama_model_loader` (`n_split`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

_KEY = "split.count"
_SHARD = re.compile(r"-([0-9]{5})-of-([0-9]{5})\.gguf$")


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit for a whole file that is named like a shard."""
    del settings
    found = _SHARD.search(model.gguf.name)
    if found is None or _KEY in model.gguf.fields or int(found[2]) < 2:
        return
    yield Hit(
        message=(
            f"needs {_KEY} to be one of {int(found[2])} shards as its name says, the key is absent"
        ),
        where=Where(key=_KEY),
        expected=int(found[2]),
        actual=None,
        level=Severity.INFO,
    )


RULE = Rule(
    id="PKG005",
    name="shard-name-misleads",
    levels=(Severity.INFO,),
    check=OnModel(check),
    authority="llama.cpp b11434 src/llama-model-loader.cpp llama_model_loader",
)

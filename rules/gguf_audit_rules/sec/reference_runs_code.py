"""The reference takes its model code from another repository.

## What it does
Reads `auto_map` in `config.json` and `tokenizer_config.json`: entries such as
`owner/repo--modeling.Class` name code that is not in the checkpoint. None of it is ever run
here. Code in the checkpoint's own repository is not reported, and many fine-tunes name that of
their parent by right.

## Why it matters
Whoever loads the checkpoint with `trust_remote_code` runs what that repository holds on that
day, whoever owns it then.

## Fix
Nothing about the GGUF. Load the checkpoint without `trust_remote_code`, or pin `code_revision`.

## Authority
transformers `dynamic_module_utils.get_class_from_dynamic_module` (`repo--module.Class`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gguf_audit.checkpoint import Json
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit.where import Where

KEY = "auto_map"
SHOWN = 5


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file that names another repository's code."""
    del settings
    checkpoint = conversion.checkpoint
    for file, document in (
        ("config.json", checkpoint.config),
        ("tokenizer_config.json", checkpoint.tokenizer_config),
    ):
        owners = () if isinstance(document, Absent) else _repositories(document)
        foreign = sorted({each for each in owners if each != checkpoint.id})
        if foreign:
            rest = f" (and {len(foreign) - SHOWN} more)" if len(foreign) > SHOWN else ""
            yield Hit(
                message=f"needs no code from elsewhere, {KEY} of the reference's {file} names "
                f"{', '.join(foreign[:SHOWN])}{rest}",
                where=Where(file=f"{checkpoint.id}/{file}", key=KEY),
                actual=foreign,
                level=Severity.INFO,
            )


def _repositories(document: Mapping[str, Json]) -> Iterator[str]:
    """Yield the repository of each entry that names one."""
    entries = document.get(KEY)
    for entry in entries.values() if isinstance(entries, dict) else ():
        # A tokenizer has two, a slow and a fast one.
        for name in entry if isinstance(entry, list) else [entry]:
            if isinstance(name, str) and "--" in name:
                yield name.partition("--")[0]


RULE = Rule(
    id="SEC011",
    name="reference-runs-code",
    levels=(Severity.INFO,),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    any_reference=True,
    authority="transformers dynamic_module_utils get_class_from_dynamic_module",
)

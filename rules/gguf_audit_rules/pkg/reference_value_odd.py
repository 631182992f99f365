"""A file of the reference holds a value that not every reader takes.

## What it does
Looks through `config.json`, `generation_config.json` and `tokenizer_config.json` for numbers that
JSON doesn't have: `NaN`, `Infinity`, and `1e400`, which is infinite once it is read. A NaN is a
warning. Infinity is for your information only, and not even that under a name that says *limit* or
*clamp*: published configurations hold it there (`time_step_limit` of Nemotron-H), and Python's
parser, which transformers and the converter use, takes it. In `tokenizer.json` and in the header
of a safetensors file, which no Python parser reads, the same is refused.

A `model_type` that is no name is a warning as well.

## Why it matters
Strict parsers refuse the whole file, so that an engine that isn't written in Python can't load the
checkpoint; one that does computes with NaN. transformers finds no class for such a `model_type`.

## Fix
Nothing about the GGUF. Have the checkpoint's file corrected, or take another revision of it.

## Authority
RFC 8259, section 6 ("Numeric values that cannot be represented ... are not permitted");
transformers `AutoConfig.from_pretrained` (`model_type`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from gguf_audit.checkpoint import Json, non_finite
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit.where import Where

KEY = "model_type"
SHOWN = 5
#: What has no bound is infinite by right.
UNBOUNDED = re.compile("limit|clamp", re.IGNORECASE)
#: All that are published: ``gpt_neox``, ``nemotron-nas``, ``phi-msft``; some are empty.
NAME = re.compile(r"[A-Za-z0-9_.+-]{0,64}")


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file with such numbers, and one for a kind that is no name."""
    del settings
    checkpoint = conversion.checkpoint
    for file, document in checkpoint.documents.items():
        yield from _numbers(f"{checkpoint.id}/{file}", file, document)
    if not isinstance(checkpoint.config, Absent):
        yield from _kind(f"{checkpoint.id}/config.json", checkpoint.config.get(KEY))


def _numbers(place: str, file: str, document: Mapping[str, Json]) -> Iterator[Outcome]:
    found = [
        (where, value)
        for where, value in non_finite(dict(document))
        if math.isnan(value) or not UNBOUNDED.search(where)
    ]
    # What is no number at all goes first.
    found.sort(key=lambda each: not math.isnan(each[1]))
    if not found:
        return
    first, value = found[0]
    named = ", ".join(f"{where} is {_spelled(value)}" for where, value in found[:SHOWN])
    rest = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
    yield Hit(
        message=f"needs finite numbers, in the reference's {file} {named}{rest}: strict parsers "
        "refuse the file",
        where=Where(file=place, key=first),
        expected="finite numbers",
        actual=_spelled(value),
        level=Severity.WARNING if math.isnan(value) else Severity.INFO,
    )


def _spelled(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _kind(place: str, found: Json) -> Iterator[Outcome]:
    if found is None or (isinstance(found, str) and NAME.fullmatch(found)):
        return
    shown = ascii(found)
    cut = shown if len(shown) <= 40 else shown[:40] + "..."
    yield Hit(
        message=f"needs the name of a kind of model, {KEY} of the reference's config.json is "
        f"{cut}: transformers has no class for it",
        where=Where(file=place, key=KEY),
        expected="a name",
        actual=cut,
        level=Severity.WARNING,
    )


RULE = Rule(
    id="PKG051",
    name="reference-value-odd",
    levels=(Severity.WARNING, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    any_reference=True,
    authority="RFC 8259 section 6; transformers AutoConfig.from_pretrained",
)

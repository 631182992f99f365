"""A classifier lost a part of its head, or its labels are others.

## What it does
Where the reference classifies (`...ForSequenceClassification`), compares the labels with its
`id2label` in the order of their numbers (a single pair of made-up labels counts as none), and
looks for the pooler that BERT puts between its first token and the classifier.

## Why it matters
Scores get the wrong names, or other values: without its pooler, which the converter drops,
BERT's classifier sees the raw first token. Scores shrink to a fraction, their order mostly
stays, and thresholds that were set on the original no longer hold.

## Fix
Set the labels again, or convert with a converter that keeps the pooler. Where only the order
of scores counts, the file can be used as it is.

## Authority
llama.cpp b11434, `conversion/bert.py: BertModel`; transformers,
`models/bert/modeling_bert.py: BertForSequenceClassification`; antonellof/ferrox issue 82.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gguf_audit.checkpoint import Json
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnConversion, Outcome, Reconvert, Rule, SetArray, Severity
from gguf_audit.where import Where

POOLED = frozenset({"bert"})
HEAD, POOLER, PLACE = "cls.output.weight", "pooler.dense.weight", "cls.weight"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for other labels, one for a pooler that was dropped."""
    del settings
    config, gguf = conversion.checkpoint.config, conversion.model.gguf
    if isinstance(config, Absent) or not _classifies(config):
        return
    yield from _labels(gguf, config)
    if config.get("model_type") in POOLED and HEAD in gguf.tensors and PLACE not in gguf.tensors:
        tensors = conversion.checkpoint.tensors
        if isinstance(tensors, Absent) or any(name.endswith(POOLER) for name in tensors):
            yield Hit(
                message=(
                    "the reference's classifier sees the pooled first token, the file has no pooler:"
                    " scores are others, their order mostly the same"
                ),
                where=Where(tensor=PLACE),
                expected=PLACE,
                level=Severity.WARNING,
                repair=Reconvert(hint="with a converter that keeps bert.pooler"),
            )


def _classifies(config: Mapping[str, Json]) -> bool:
    names = config.get("architectures")
    return isinstance(names, list) and any(
        isinstance(name, str) and name.endswith("ForSequenceClassification") for name in names
    )


def _labels(gguf: Gguf, config: Mapping[str, Json]) -> Iterator[Outcome]:
    key = f"{gguf.architecture}.classifier.output_labels"
    array = gguf.array(key)
    wanted = _expected(config)
    if array is None or wanted is None:
        return
    found = list(array.items())
    if found != wanted:
        yield Hit(
            message=f"needs the labels {_few(wanted)}, {key} is {_few(found)}",
            where=Where(key=key, offset=gguf.fields[key].offset),
            expected=wanted,
            actual=found,
            level=Severity.ERROR,
            repair=SetArray(key=key, items=tuple(wanted)),
        )


def _expected(config: Mapping[str, Json]) -> list[str] | None:
    """Return the labels in the order of their numbers, ``None`` where nobody made any."""
    labels = config.get("id2label")
    if not isinstance(labels, dict) or not all(key.isdecimal() for key in labels):
        return None
    wanted = [str(labels[key]) for key in sorted(labels, key=int)]
    return None if len(wanted) == 2 and wanted[0] == "LABEL_0" else wanted


def _few(labels: Sequence[object]) -> str:
    shown = ", ".join(repr(label) for label in labels[:4])
    return shown if len(labels) <= 4 else f"{shown} and {len(labels) - 4} more"


RULE = Rule(
    id="PKG049",
    name="classifier-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnConversion(check),
    authority="llama.cpp b11434 conversion/bert.py BertModel, transformers "
    "models/bert/modeling_bert.py BertForSequenceClassification",
)

"""The reference takes its model code from another repository.

## What it does
Reads every `auto_map` in `config.json`, `generation_config.json` and `tokenizer_config.json`:
entries such as `owner/repo--modeling.Class` name code that is not in the checkpoint. None of it is ever run
here. Code in the checkpoint's own repository is not reported, and many fine-tunes name that of
their parent by right: that is for your information. A model class that belongs to none of the
checkpoint's `architectures` is an error: a checkpoint of `LlamaForCausalLM` has no use for
`Other`, whoever has written it. So is a repository that is named as the implementation of
attention or experts: transformers fetches compiled kernels from there.

## Why it matters
Whoever loads the checkpoint with `trust_remote_code` runs what that repository holds on that
day, whoever owns it then.

## Fix
Nothing about the GGUF. Load the checkpoint without `trust_remote_code`, or pin `code_revision`.

## Authority
transformers `dynamic_module_utils.get_class_from_dynamic_module` (`repo--module.Class`),
`integrations/hub_kernels.py`; CVE-2026-4372.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gguf_audit.checkpoint import Json
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit.where import Where

KEY = "auto_map"
SHOWN = 5
#: What ends the part of a class's name that all classes of an architecture begin with.
_ROLE = re.compile("For[A-Z]|LMHead|Model$")


_IMPLEMENTATION = re.compile(r"_?(attn|experts)_implementation(_internal)?")


class Code(NamedTuple):
    """An entry that names code of a repository."""

    #: ``AutoModelForCausalLM``, say: what asks for it.
    asked_by: str
    repository: str
    #: ``modeling.Class``
    name: str

    def __str__(self) -> str:
        return f"{self.repository}--{self.name}"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file that names another repository's code."""
    del settings
    checkpoint = conversion.checkpoint
    for file, document in (
        ("config.json", checkpoint.config),
        ("generation_config.json", checkpoint.generation_config),
        ("tokenizer_config.json", checkpoint.tokenizer_config),
    ):
        if isinstance(document, Absent):
            continue
        kernels = sorted(
            {f"{key} {value}" for key, value in _members(document) if _kernel(key, value)}
        )
        if kernels:
            yield Hit(
                message=f"needs no code from elsewhere, the reference's {file} has "
                f"{_listed(kernels)}",
                where=Where(file=f"{checkpoint.id}/{file}"),
                actual=kernels,
                level=Severity.ERROR,
            )
        foreign = [each for each in _code(document) if each.repository != checkpoint.id]
        if not foreign:
            continue
        architectures = _architectures(checkpoint.config)
        strange = [each for each in foreign if not _belongs(each, architectures)]
        yield Hit(
            message=f"needs no code from elsewhere, {KEY} of the reference's {file} names "
            + (
                f"{_listed(map(str, strange))}, no class of {_listed(architectures)}"
                if strange
                else _listed(each.repository for each in foreign)
            ),
            where=Where(file=f"{checkpoint.id}/{file}", key=KEY),
            actual=sorted({each.repository for each in foreign}),
            level=Severity.ERROR if strange else Severity.INFO,
        )


def _code(document: Mapping[str, Json]) -> Iterator[Code]:
    """Yield each entry that names a repository, in the document or a part of it."""
    for key, entries in _members(document):
        if key != KEY:
            continue
        # Older tokenizers have a list of two, a slow and a fast one, and no names for it.
        named = entries.items() if isinstance(entries, dict) else [("AutoTokenizer", entries)]
        for asked_by, entry in named:
            for name in entry if isinstance(entry, list) else [entry]:
                if isinstance(name, str) and "--" in name:
                    repository, _, code = name.partition("--")
                    yield Code(asked_by, repository, code)


def _members(document: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield every key and value of a document, those of its parts among them."""
    left: list[Json] = [dict(document)]
    while left:
        match left.pop():
            case dict() as members:
                yield from members.items()
                left += members.values()
            case list() as items:
                left += items
            case _:
                pass


def _kernel(key: str, value: Json) -> bool:
    """Tell whether a value is a repository of kernels, and not Hugging Face's own."""
    return (
        _IMPLEMENTATION.fullmatch(key) is not None
        and isinstance(value, str)
        and "/" in value
        and not value.startswith("kernels-community/")
    )


def _architectures(config: Mapping[str, Json] | Absent) -> list[str]:
    listed = None if isinstance(config, Absent) else config.get("architectures")
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def _belongs(code: Code, architectures: Sequence[str]) -> bool:
    """Tell whether it may be a class of these; of models only, others have names of their own."""
    if not (architectures and code.asked_by.startswith("AutoModel")):
        return True
    name = code.name.rpartition(".")[2].lower()
    return any(name.startswith(_ROLE.split(each)[0].lower()) for each in architectures)


def _listed(items: Iterable[str]) -> str:
    """Return different items, in order, and how many more there are."""
    distinct = sorted(set(items))
    rest = f" (and {len(distinct) - SHOWN} more)" if len(distinct) > SHOWN else ""
    return f"{', '.join(distinct[:SHOWN])}{rest}"


RULE = Rule(
    id="SEC011",
    name="reference-runs-code",
    levels=(Severity.ERROR, Severity.INFO),
    check=OnConversion(check),
    needs=frozenset({Need.REFERENCE}),
    any_reference=True,
    authority="transformers dynamic_module_utils get_class_from_dynamic_module",
)

"""The reference takes its model code from another repository.

## What it does
Reads every `auto_map` in `config.json`, `generation_config.json` and `tokenizer_config.json`:
entries such as `owner/repo--modeling.Class` name code that is not in the checkpoint. None of it
is ever run here. Code in the checkpoint's own repository is not reported, and many fine-tunes name
that of their parent by right: that is for your information. A model class that by its name belongs
to none of the checkpoint's `architectures` is an error: a checkpoint of `LlamaForCausalLM` has no
use for `Other`, whoever has written it. Where they aren't named as classes of transformers are
(`HF_ColBERT`), `model_type` counts too. So is a repository an error that is named as the
implementation of attention or experts, other than Hugging Face's own (`kernels-community`):
transformers fetches compiled kernels from there.

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
from gguf_audit.rule import Hit, Need, OnConversion, Outcome, Rule, Severity
from gguf_audit.where import Where

KEY = "auto_map"
SHOWN = 5
#: What ends the part of a class's name that all classes of an architecture begin with.
_ROLE = re.compile("For[A-Z]|LMHead|Model$")
#: What a kind's name has and a class's hasn't.
_PUNCTUATION = re.compile(r"[\W_]")
_IMPLEMENTATION = re.compile(r"_?(attn|experts)_implementation(_internal)?")


class Kinds(NamedTuple):
    """What a checkpoint says that it is, or a part of it."""

    #: Classes: ``JinaBertModel``, ``HF_ColBERT``.
    architectures: tuple[str, ...]
    #: ``xlm-roberta``; "" for none.
    model_type: str


class Code(NamedTuple):
    """An entry that names code of a repository."""

    #: ``AutoModelForCausalLM``, say: what asks for it.
    asked_by: str
    repository: str
    #: ``modeling.Class``
    name: str
    #: What it is the code of.
    kinds: Kinds

    def __str__(self) -> str:
        return f"{self.repository}--{self.name}"


def check(conversion: Conversion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each file that names another repository's code."""
    del settings
    checkpoint = conversion.checkpoint
    for file, document in checkpoint.documents.items():
        place = f"{checkpoint.id}/{file}"
        yield from _kernels(place, file, document)
        found = _code(document, _kinds(checkpoint.documents.get("config.json", {})))
        foreign = [each for each in found if each.repository != checkpoint.id]
        if foreign:
            yield _foreign(place, file, foreign)


def _kernels(place: str, file: str, document: Mapping[str, Json]) -> Iterator[Outcome]:
    members = (member for part in _parts(document) for member in part.items())
    found = sorted({f"{key} {value}" for key, value in members if _kernel(key, value)})
    if found:
        yield Hit(
            message=f"needs no code from elsewhere, the reference's {file} has {_listed(found)}",
            where=Where(file=place),
            actual=found,
            level=Severity.ERROR,
        )


def _foreign(place: str, file: str, foreign: Sequence[Code]) -> Hit:
    strange = [each for each in foreign if not _belongs(each)]
    wanted = (name for each in strange for name in each.kinds.architectures)
    return Hit(
        message=f"needs no code from elsewhere, {KEY} of the reference's {file} names "
        + (
            f"{_listed(map(str, strange))}, no class of {_listed(wanted)}"
            if strange
            else _listed(each.repository for each in foreign)
        ),
        where=Where(file=place, key=KEY),
        actual=sorted({each.repository for each in foreign}),
        level=Severity.ERROR if strange else Severity.INFO,
    )


def _code(document: Mapping[str, Json], whole: Kinds) -> Iterator[Code]:
    """Yield each entry that names a repository, in the document or a part of it.

    A part that doesn't say what it is goes by the whole.
    """
    for part in _parts(document):
        kinds = _kinds(part)
        kinds = kinds if kinds.architectures else whole
        entries = part.get(KEY)
        # Older tokenizers have a list of two, a slow and a fast one, and no names for it.
        named = entries.items() if isinstance(entries, dict) else [("AutoTokenizer", entries)]
        for asked_by, entry in named:
            for name in entry if isinstance(entry, list) else [entry]:
                if isinstance(name, str) and "--" in name:
                    repository, _, code = name.partition("--")
                    yield Code(asked_by, repository, code, kinds)


def _parts(document: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield a document and every object in it."""
    left: list[Json] = [dict(document)]
    while left:
        match left.pop():
            case dict() as members:
                yield members
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


def _kinds(part: Mapping[str, Json]) -> Kinds:
    listed, model_type = part.get("architectures"), part.get("model_type")
    architectures = listed if isinstance(listed, list) else []
    return Kinds(
        tuple(each for each in architectures if isinstance(each, str)),
        model_type if isinstance(model_type, str) else "",
    )


def _belongs(code: Code) -> bool:
    """Tell whether it may be a class of these; of models only, others have names of their own."""
    architectures, model_type = code.kinds
    if not (architectures and code.asked_by.startswith("AutoModel")):
        return True
    name = code.name.rpartition(".")[2].lower()
    if any(name.startswith(_ROLE.split(each)[0].lower()) for each in architectures):
        return True
    if all(map(_ROLE.search, architectures)):
        return False
    # jina-colbert-v2 is an HF_ColBERT of the type xlm-roberta, made by XLMRobertaModel.
    kind = _PUNCTUATION.sub("", model_type).lower()
    return bool(kind) and kind in _PUNCTUATION.sub("", name)


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

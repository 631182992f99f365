"""What the model card beside a file says: what it was made from, and what stands beside it.

Of its YAML only scalars and flat lists are read, in the forms in which the Hub's own editor
writes them: a scalar, a list in brackets, a list of lines. So no YAML parser has to be fed
with what somebody put beside a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from gguf_audit.errors import AuditError
from gguf_audit.formats._json import read_text
from gguf_audit.gguf import Card
from gguf_audit.limits import LIMITS
from gguf_audit.sources import Tree

__all__ = ["BaseModel", "parse_base_model", "parse_card", "read_base_model", "read_card"]

_FENCE = "---"
_NAME_CHARACTERS = 256
# Patterns are compiled where there is a card: that takes a millisecond, and every file is
# asked for one.
_WORD = r"[A-Za-z0-9._+-]+"
#: Whatever looks like a quantization, as a word of its own.
_QUANTIZATION = (
    r"(?i)(?<![A-Za-z0-9])"
    r"(?:I?Q[0-9](?:_[A-Z0-9]+)*|TQ[0-9]_[0-9]|B?F16|F32|MXFP4(?:_MOE)?)(?![A-Za-z0-9])"
)
#: A link of Markdown's or HTML's with its text, or a bare address.
_LINK = (
    r"(?i)\[(?P<markdown>[^\[\]]{0,500})\]\((?P<there>https?://[^\s()]{1,2000})\)"
    r"|<a\s(?P<tag>[^<>]{0,2000})>(?P<html>[^<>]{0,500})</a>"
    r"|(?P<bare>https?://[^\s()<>\[\]\"'`|]{1,2000})"
)
_HREF = r"(?i)href=[\"']?(https?://[^\s\"']+)"
_REPOSITORY = r"(?i)https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)"


class BaseModel(Struct, frozen=True):
    """The one model that a card names as its base, and how it says to come from it."""

    name: str
    #: ``quantized``, ``finetune``, ``adapter``, ``merge``, or "" where it doesn't say.
    relation: str


def read_base_model(tree: Tree) -> BaseModel | None:
    """Return what ``README.md`` of a folder says, ``None`` where it can't be read."""
    try:
        source = tree.open("README.md")
        return parse_base_model(read_text(source, limit_bytes=LIMITS.readme_bytes))
    except AuditError:
        return None  # Any text may stand there, or none: it is a hint, no evidence.


def read_card(tree: Tree) -> Card | None:
    """Return what ``README.md`` of a folder says of the models in it.

    ``None`` where there is none, or one without front matter: that is no model card.
    """
    try:
        names = tree.names()
        if "README.md" not in names:
            return None
        text = read_text(tree.open("README.md"), limit_bytes=LIMITS.readme_bytes)
    except AuditError:
        return None  # As above.
    return parse_card(text, of_checkpoint="config.json" in names)


def parse_card(text: str, *, of_checkpoint: bool = False) -> Card | None:
    """Return what a card's text says, ``None`` where it has no front matter."""
    if not text.startswith(_FENCE):
        return None
    return Card(
        license=next(_items(text, "license"), None),
        license_name=next(_items(text, "license_name"), None),
        base_models=tuple(_items(text, "base_model")),
        files=frozenset(_files(text)),
        listed=_listed(text),
        labels=frozenset(word.upper() for word in re.findall(_QUANTIZATION, text)),
        of_checkpoint=of_checkpoint,
    )


def _files(text: str) -> Iterator[str]:
    """Yield every name of a GGUF file in a text; of ``a.gguf.part1of2`` that of the whole."""
    for word in re.findall(_WORD, text):
        stem, ending, _ = word.rpartition(".gguf")
        name = stem.lstrip("._+-") + ending
        if len(ending) < len(name) <= _NAME_CHARACTERS:
            yield name


def _listed(text: str) -> dict[str, frozenset[str]]:
    """Return the names of files in a text by where the links around them lead."""
    found: dict[str, set[str]] = {}
    for link in re.finditer(_LINK, text):
        address = link["there"] or link["bare"]
        if link["tag"] is not None:
            href = re.search(_HREF, link["tag"])
            address = "" if href is None else href[1]
        repository = re.match(_REPOSITORY, address)
        place = address.rpartition("/")[0] if repository is None else repository[1]
        said = " ".join((address, link["markdown"] or link["html"] or ""))
        found.setdefault(place, set()).update(_files(said))
    found.setdefault("", set()).update(_files(re.sub(_LINK, " ", text)))
    return {place: frozenset(names) for place, names in found.items() if names}


def parse_base_model(text: str) -> BaseModel | None:
    """Return the base model of a card's text, ``None`` where it has none or several."""
    models = tuple(_items(text, "base_model"))
    relations = tuple(_items(text, "base_model_relation"))
    if len(models) != 1 or len(relations) > 1:
        return None
    return BaseModel(models[0], relations[0] if relations else "")


def _items(text: str, key: str) -> Iterator[str]:
    """Yield the scalars under a key at the top of the front matter."""
    lines = iter(text.splitlines())
    if next(lines, "").rstrip() != _FENCE:
        return
    inside = False
    for line in lines:
        if line.rstrip() == _FENCE:
            return
        bare = line.strip()
        if inside and bare.startswith("- "):
            yield _scalar(bare[2:])
        elif bare and not bare.startswith("#"):
            name, colon, value = line.partition(":")
            inside = bool(colon) and name.rstrip() == key
            value = _without_comment(value)
            if inside and value.startswith("[") and value.endswith("]"):
                yield from (_scalar(part) for part in value[1:-1].split(",") if part.strip())
            elif inside and value:
                yield _scalar(value)


def _without_comment(value: str) -> str:
    return value.partition(" #")[0].strip()


def _scalar(value: str) -> str:
    value = _without_comment(value)
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return value

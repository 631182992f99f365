"""What the model card beside a file says of the model that it was made from.

Of its YAML only two keys are read, in the forms in which the Hub's own editor writes
them: a scalar, a list in brackets, a list of lines. So no YAML parser has to be fed
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
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,250}\.gguf")
#: Whatever looks like a quantization, as a word of its own.
_QUANTIZATION = re.compile(
    r"(?<![A-Za-z0-9])(?:I?Q[0-9](?:_[A-Z0-9]+)*|TQ[0-9]_[0-9]|B?F16|F32|MXFP4(?:_MOE)?)(?![A-Za-z0-9])",
    re.IGNORECASE,
)


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
        files=frozenset(_FILE.findall(text)),
        labels=frozenset(word.upper() for word in _QUANTIZATION.findall(text)),
        of_checkpoint=of_checkpoint,
    )


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

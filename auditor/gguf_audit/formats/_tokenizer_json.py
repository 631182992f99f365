"""Reads ``tokenizer.json``, the file of Hugging Face's ``tokenizers`` library.

Nearly all of a large one is its vocabulary and its merges. Those are decoded by msgspec,
as what they have to be and nothing else, and the document without them by the strict
reader. Wherever there is any doubt the strict reader has all of the document, and says
what is wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, TypeGuard, cast

from msgspec import Struct

from gguf_audit.checkpoint import AddedToken, Json, TokenizerJson
from gguf_audit.errors import AuditError, LimitError, MalformedError
from gguf_audit.formats._json import parse_object, read_bytes, values_in
from gguf_audit.limits import LIMITS
from gguf_audit.sources import ByteSource
from gguf_audit.where import Where

if TYPE_CHECKING:
    from msgspec import Raw

__all__ = ["TOKENIZER", "Apart", "read_apart", "read_tokenizer_json"]

TOKENIZER = "tokenizer.json"
#: Sections of the model that have a place of their own.
_OWN = frozenset({"type", "vocab", "merges"})
#: Below, importing msgspec costs more than it saves.
_LARGE_BYTES = 1 << 20
#: Pairs that are decoded at once: each is three objects, of which one string is kept.
_PAIRS = 4096
#: By so many first bytes a section is looked for.
_HEAD_BYTES = 256
#: What stands for a space inside a part of a pair.
_SPACE = "\u0120"


def read_tokenizer_json(source: ByteSource) -> TokenizerJson:
    """Read a ``tokenizer.json``.

    Raises MalformedError where it isn't what ``tokenizers`` would load, and LimitError
    for more, or a higher id, than any real vocabulary has.
    """
    data = read_bytes(source, limit_bytes=LIMITS.tokenizer_bytes)
    apart = None if len(data) < _LARGE_BYTES else read_apart(data, name=source.name)
    document = parse_object(data, name=source.name, finite=True) if apart is None else apart.rest
    del data
    model = document.get("model")
    if not isinstance(model, dict):
        raise _wrong("model", "an object")
    if apart is None:
        ids, scores = _vocabulary(model.get("vocab"))
        merges = tuple(_merges(model.get("merges")))
    else:
        ids, scores, merges = apart.ids, (), apart.merges
    added = tuple(_added(document.get("added_tokens")))
    highest = max((*ids.values(), *(token.id for token in added)), default=-1)
    if highest >= LIMITS.vocabulary_tokens:
        raise LimitError(
            f"{TOKENIZER} has a token with id {highest}, more than {LIMITS.vocabulary_tokens} are not read",
            where=Where(file=TOKENIZER),
        )
    kind = model.get("type")
    return TokenizerJson(
        model=kind if isinstance(kind, str) else "",
        ids=ids,
        scores=scores,
        merges=merges,
        added=added,
        options={key: value for key, value in model.items() if key not in _OWN},
        normalizer=document.get("normalizer"),
        pre_tokenizer=document.get("pre_tokenizer"),
        post_processor=document.get("post_processor"),
        decoder=document.get("decoder"),
        size=highest + 1,
    )


class Apart(Struct, frozen=True, kw_only=True):
    """A ``tokenizer.json`` in three parts."""

    #: The document with ``null`` for the other two.
    rest: dict[str, Json]
    ids: dict[str, int]
    merges: tuple[str, ...]


def read_apart(data: bytes, *, name: str) -> Apart | None:
    """Return a document of byte pairs, ``None`` where it has to be read as a whole."""
    from msgspec import DecodeError, Meta, Raw
    from msgspec.json import decode

    if values_in(data) > LIMITS.json_values:
        return None
    try:
        model = decode(decode(data, type=dict[str, Raw])["model"], type=dict[str, Raw])
        vocab, pairs = model["vocab"], model["merges"]
        # The larger one first: what is copied then is small.
        rest = parse_object(
            _without(_without(data, bytes(pairs)), bytes(vocab)), name=name, finite=True
        )
        ids = decode(vocab, type=dict[str, Annotated[int, Meta(ge=0, lt=LIMITS.vocabulary_tokens)]])
        merges = _decoded(pairs)
    except (AuditError, DecodeError, KeyError, RecursionError, UnicodeDecodeError):
        return None
    match rest:
        # A section may have been taken out where the same stands once more, and of a key
        # that stands twice msgspec takes the last.
        case {"model": {"vocab": None, "merges": None}} if _quotes(vocab) == 2 * len(ids):
            return Apart(rest=rest, ids=ids, merges=merges)
        case _:
            return None


def _without(data: bytes, section: bytes) -> bytes:
    """Return a document with ``null`` for a section.

    ``bytes.find`` prepares for as long as what it looks for is.
    """
    start = data.find(section[:_HEAD_BYTES])
    if not data.startswith(section, start):
        return data
    return data[:start] + b"null" + data[start + len(section) :]


def _decoded(section: Raw) -> tuple[str, ...]:
    """Return merges; DecodeError where they are neither texts nor pairs of texts."""
    from msgspec import Raw, ValidationError
    from msgspec.json import Decoder, decode

    with contextlib.suppress(ValidationError):
        return tuple(decode(section, type=list[str]))
    pairs = Decoder(list[tuple[str, str]])
    each = iter(decode(section, type=list[Raw]))
    merges: list[str] = []
    while some := b",".join(islice(each, _PAIRS)):
        decoded = pairs.decode(b"[%b]" % some)
        made = [f"{left} {right}" for left, right in decoded]
        if "".join(made).count(" ") > len(made):
            made = [_merged(left, right) for left, right in decoded]
        merges += made
    return tuple(merges)


def _quotes(section: Raw) -> int:
    """Return how many quotes delimit strings; those in strings are escaped."""
    text = bytes(section)
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.count(b'"')


def _vocabulary(value: Json) -> tuple[Mapping[str, int], tuple[float, ...]]:
    """Return the ids of a vocabulary, and the scores of Unigram's list of pieces."""
    match value:
        case dict():
            if not all(map(_is_id, value.values())):
                raise _wrong("model.vocab", "an object of ids")
            return cast("dict[str, int]", value), ()
        case list():
            pieces = [piece for piece in value if _is_piece(piece)]
            if len(pieces) < len(value):
                raise _wrong("model.vocab", "a list of texts with scores")
            ids = {text: id_ for id_, (text, _) in enumerate(pieces)}
            return ids, tuple(float(score) for _, score in pieces)
        case _:
            raise _wrong("model.vocab", "an object or a list")


def _merges(value: Json) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, list):
        raise _wrong("model.merges", "a list")
    for merge in value:
        match merge:
            case str():
                yield merge
            case [str() as left, str() as right]:
                yield _merged(left, right)
            case _:
                raise _wrong("model.merges", "a list of texts or pairs of texts")


def _merged(left: str, right: str) -> str:
    """Return a pair as a file has it: a space inside a part is written as another."""
    if " " in left or " " in right:
        return f"{left.replace(' ', _SPACE)} {right.replace(' ', _SPACE)}"
    return f"{left} {right}"


def _added(value: Json) -> Iterator[AddedToken]:
    if value is None:
        return
    if not isinstance(value, list):
        raise _wrong("added_tokens", "a list")
    for entry in value:
        content = entry.get("content") if isinstance(entry, dict) else None
        id_ = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(content, str) or not _is_id(id_):
            raise _wrong("added_tokens", "a list of contents with ids")
        yield AddedToken(
            id=id_,
            content=content,
            special=entry.get("special") is True,
            normalized=entry.get("normalized") is True,
            lstrip=entry.get("lstrip") is True,
            rstrip=entry.get("rstrip") is True,
            single_word=entry.get("single_word") is True,
        )


def _is_id(value: Json) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _is_piece(value: Json) -> TypeGuard[tuple[str, float]]:
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], int | float)
    )


def _wrong(key: str, wanted: str) -> MalformedError:
    return MalformedError(
        f"{TOKENIZER}: {key} has to be {wanted}", where=Where(file=TOKENIZER, key=key)
    )

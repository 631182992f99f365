"""Reads ``tokenizer.json``, the file of Hugging Face's ``tokenizers`` library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeGuard, cast

from gguf_audit.errors import LimitError, MalformedError
from gguf_audit.formats._json import read_object
from gguf_audit.limits import LIMITS
from gguf_audit.sources import ByteSource
from gguf_audit.subject import AddedToken, Json, TokenizerJson
from gguf_audit.where import Where

__all__ = ["TOKENIZER", "read_tokenizer_json"]

TOKENIZER = "tokenizer.json"
#: Sections of the model that have a place of their own.
_OWN = frozenset({"type", "vocab", "merges"})


def read_tokenizer_json(source: ByteSource) -> TokenizerJson:
    """Read a ``tokenizer.json``.

    Raises MalformedError where it isn't what ``tokenizers`` would load, and LimitError
    for more, or a higher id, than any real vocabulary has.
    """
    document = read_object(source, limit_bytes=LIMITS.tokenizer_bytes)
    model = document.get("model")
    if not isinstance(model, dict):
        raise _wrong("model", "an object")
    ids, scores = _vocabulary(model.get("vocab"))
    added = tuple(_added(document.get("added_tokens")))
    highest = max((*ids.values(), *(token.id for token in added)), default=-1)
    if highest >= LIMITS.array_strings:
        raise LimitError(
            f"{TOKENIZER} has a token with id {highest}, more than {LIMITS.array_strings} are not read",
            where=Where(file=TOKENIZER),
        )
    kind = model.get("type")
    return TokenizerJson(
        model=kind if isinstance(kind, str) else "",
        ids=ids,
        scores=scores,
        merges=tuple(_merges(model.get("merges"))),
        added=added,
        options={key: value for key, value in model.items() if key not in _OWN},
        normalizer=document.get("normalizer"),
        pre_tokenizer=document.get("pre_tokenizer"),
        post_processor=document.get("post_processor"),
        decoder=document.get("decoder"),
        size=highest + 1,
    )


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


def _merges(value: Json) -> Iterator[str | tuple[str, str]]:
    if value is None:
        return
    if not isinstance(value, list):
        raise _wrong("model.merges", "a list")
    for merge in value:
        match merge:
            case str():
                yield merge
            case [str() as left, str() as right] if " " in left or " " in right:
                yield left, right
            case [str() as left, str() as right]:
                yield f"{left} {right}"
            case _:
                raise _wrong("model.merges", "a list of texts or pairs of texts")


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

"""Reads a SentencePiece model: a protocol buffer of pieces, of which few fields matter.

``sentencepiece_model.proto``, ``ModelProto``. Our own reader, because the libraries that
read it are compiled, large and made to run the model; this walks the message within
its bounds and takes what a converter takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NoReturn

from gguf_audit.checkpoint import SentencePiece
from gguf_audit.errors import LimitError, MalformedError
from gguf_audit.formats._json import read_bytes
from gguf_audit.limits import LIMITS
from gguf_audit.sources import ByteSource
from gguf_audit.where import Where

__all__ = ["read_sentencepiece"]

_FLOAT = Struct("<f")
#: ``ModelProto``: pieces, trainer_spec, normalizer_spec.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
#: ``ModelProto.SentencePiece``: piece, score, type (absent: normal).
_TEXT, _SCORE, _TYPE = 1, 2, 3
_NORMAL = 1
#: ``TrainerSpec.model_type`` (absent: unigram).
_MODEL_TYPE = 3
#: ``NormalizerSpec``; both switches are on where they are absent.
_CHARSMAP, _DUMMY_PREFIX, _EXTRA_WHITESPACES = 2, 3, 4


def read_sentencepiece(source: ByteSource) -> SentencePiece:
    """Read a SentencePiece model.

    Raises MalformedError for bytes that are no such message, and LimitError for more
    of them, or more pieces, than any real one has.
    """
    data = read_bytes(source, limit_bytes=LIMITS.sentencepiece_bytes)
    walk = _Walk(data, source.name)
    texts: list[str] = []
    scores: list[float] = []
    types: list[int] = []
    model_type, prefix, extra, charsmap = 1, True, True, b""
    for number, value in walk.fields(0, len(data)):
        match number, value:
            case int(), (start, end) if number == _PIECES:
                text, score, type_ = walk.piece(start, end)
                texts.append(text)
                scores.append(score)
                types.append(type_)
                if len(texts) > LIMITS.vocabulary_tokens:
                    raise walk.too_many()
            case int(), (start, end) if number == _TRAINER:
                for inner, setting in walk.fields(start, end):
                    if inner == _MODEL_TYPE and isinstance(setting, int):
                        model_type = setting
            case int(), (start, end) if number == _NORMALIZER:
                for inner, setting in walk.fields(start, end):
                    match inner, setting:
                        case int(), (first, last) if inner == _CHARSMAP:
                            charsmap = data[first:last]
                        case int(), int() if inner == _DUMMY_PREFIX:
                            prefix = setting != 0
                        case int(), int() if inner == _EXTRA_WHITESPACES:
                            extra = setting != 0
                        case _:
                            continue
            case _:
                continue
    if not texts:
        raise MalformedError(
            f"{source.name} is no SentencePiece model: it has no pieces",
            where=Where(file=source.name),
        )
    return SentencePiece(
        texts=texts,
        scores=scores,
        types=types,
        model_type=model_type,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=extra,
        precompiled_charsmap=charsmap,
    )


class _Walk:
    """A bounded walk over the fields of a protocol buffer."""

    __slots__ = ("_data", "_name")

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name

    def fields(self, at: int, end: int) -> Iterator[tuple[int, int | tuple[int, int]]]:
        """Yield number and value of each field: an integer, or where its bytes are.

        Groups, which nobody writes any more, are refused.
        """
        while at < end:
            tag, at = self._varint(at, end)
            number, wire = tag >> 3, tag & 7
            match wire:
                case 0:
                    value, at = self._varint(at, end)
                    yield number, value
                    continue
                case 1:
                    length = 8
                case 2:
                    length, at = self._varint(at, end)
                case 5:
                    length = 4
                case _:
                    self._malformed(at, f"wire type {wire}")
            if length > end - at:
                self._malformed(at, f"{length} bytes where {end - at} are left")
            yield number, (at, at + length)
            at += length

    def piece(self, at: int, end: int) -> tuple[str, float, int]:
        """Return text, score and type of a piece."""
        text, score, type_ = "", 0.0, _NORMAL
        for number, value in self.fields(at, end):
            if number == _TYPE and isinstance(value, int):
                type_ = value
            elif isinstance(value, int):
                continue
            elif number == _TEXT:
                text = self._text(*value)
            elif number == _SCORE and value[1] - value[0] == _FLOAT.size:
                (score,) = _FLOAT.unpack_from(self._data, value[0])
        return text, score, type_

    def too_many(self) -> LimitError:
        """Return the error for more pieces than are read."""
        return LimitError(
            f"{self._name} has more than {LIMITS.vocabulary_tokens} pieces, more are not read",
            where=Where(file=self._name),
        )

    def _text(self, start: int, end: int) -> str:
        try:
            return self._data[start:end].decode("utf-8")
        except UnicodeDecodeError as error:
            self._malformed(start + error.start, f"no UTF-8: {error.reason}")

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        while at < end and shift < 64:
            byte = self._data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        return self._malformed(at, "a number without an end")

    def _malformed(self, at: int, what: str) -> NoReturn:
        raise MalformedError(
            f"{self._name} is no SentencePiece model: {what} at byte {at}",
            where=Where(file=self._name, offset=at),
        )

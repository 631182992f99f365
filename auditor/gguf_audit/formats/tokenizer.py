"""Which special tokens the official converter writes for a checkpoint.

gguf-py/gguf/vocab.py, ``SpecialVocab`` (0.19, llama.cpp build 11434). The tokenizer's
own files have the first word; ``config.json`` fills in what they leave open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeGuard

from msgspec import Struct

from gguf_audit.checkpoint import Json, Tokenizer, TokenizerFiles, TokenizerJson
from gguf_audit.formats._departures import Departure, departure_of, vocabulary_size
from gguf_audit.formats._switches import post_processors
from gguf_audit.formats._tokenizer_json import TOKENIZER
from gguf_audit.parts import Absent

__all__ = ["TOKENIZER", "VOCABULARIES", "from_config", "has_vocabulary", "read_tokenizer"]

#: In the converter's order, without ``cls``, which it looks up but doesn't write.
_NAMES: tuple[str, ...] = ("bos", "eos", "unk", "sep", "pad", "mask")
#: Files that hold a whole vocabulary, so that a missing tokenizer.json isn't a gap.
VOCABULARIES = frozenset(
    {
        "merges.txt",
        "rwkv_vocab_v20230424.txt",
        "sentencepiece.bpe.model",
        "spiece.model",
        "tokenizer.model",
        "vocab.json",
        "vocab.txt",
    }
)


def from_config(config: Mapping[str, Json] | Absent) -> Tokenizer | Absent:
    """Return what ``config.json`` alone tells: for which names an id is written.

    Not which id: the tokenizer's own files would have the first word. Raises
    MalformedError for a text part that is no object.
    """
    if isinstance(config, Absent):
        return config
    rows = _rows(config, None)
    ids = {name: _id_in(config, name) for name in _NAMES}
    names = frozenset(name for name, id_ in ids.items() if id_ is not None and id_ < rows)
    return Tokenizer(special_ids={}, unsure_ids=names, complete=False)


def has_vocabulary(names: frozenset[str]) -> bool:
    """Tell whether a folder with these files has a tokenizer that the converter reads."""
    return TOKENIZER in names or not names.isdisjoint(VOCABULARIES)


def read_tokenizer(
    files: TokenizerFiles,
    *,
    config: Mapping[str, Json],
    tokenizer_config: Mapping[str, Json] | Absent,
) -> Tokenizer | Absent:
    """Return the special ids that the converter writes for a checkpoint folder.

    Raises MalformedError where ``tokenizer.json`` isn't what ``tokenizers`` would
    load, and LimitError for an id that no real vocabulary reaches.
    """
    if not has_vocabulary(files.names):
        return from_config(config)
    found = files.json
    vocabulary = None if isinstance(found, Absent) else found
    size = None if vocabulary is None else vocabulary.size
    special = _special_ids(vocabulary, config, tokenizer_config)
    ids = {name: id_ for name, id_ in special.items() if id_ < _rows(config, size)}
    departure = departure_of(config)
    if departure.unknown:
        return Tokenizer(special_ids={}, unsure_ids=frozenset(ids), complete=False, size=size)
    _depart(ids, departure, vocabulary, files.names)
    return Tokenizer(
        special_ids={name: id_ for name, id_ in ids.items() if name not in departure.unsure},
        unsure_ids=frozenset(departure.unsure & ids.keys()),
        complete=not departure.unsure and special.keys() <= ids.keys(),
        size=size,
    )


def _depart(
    ids: dict[str, int],
    departure: Departure,
    vocabulary: TokenizerJson | None,
    files: frozenset[str],
) -> None:
    """Change what ``SpecialVocab`` found the way that a converter class does."""
    if departure.file is not None and departure.file not in files:
        return
    added = {} if vocabulary is None else _ids_of_added(vocabulary)
    for name, token in departure.tokens.items():
        if token in added:
            ids.setdefault(name, added[token])
    ids.update(departure.ids)


def _rows(config: Mapping[str, Json], size: int | None) -> float:
    """Return how many tokens a file has, padding included; infinity where unknown."""
    known = [count for count in (vocabulary_size(config), size) if type(count) is int]
    return max(known) if known else math.inf


class _Names:
    """Name -> the token that stands for it, while post-processors change that."""

    def __init__(self, tokenizer_config: Mapping[str, Json]) -> None:
        self.tokens = {
            name: tokenizer_config.get(f"{name}_token") for name in (*_NAMES, "cls", "eot", "eom")
        }
        self._given = bool(tokenizer_config)
        #: Names that are looked up: ``eot`` and ``eom`` when ``eos`` makes room for another.
        self.wanted = list(_NAMES)
        if self._given:
            self.tokens["bos"] = self.tokens["bos"] or self.tokens["cls"]
            self.tokens["eos"] = self.tokens["eos"] or self.tokens["sep"]

    def apply(self, processor: Mapping[str, Json]) -> None:
        """Let one post-processor of ``tokenizer.json`` change what the names stand for."""
        match processor.get("type"):
            case "RobertaProcessing" if self._given:
                self.tokens["cls"] = self.tokens["cls"] or _first(
                    processor, "cls", "bos", self.tokens
                )
                self.tokens["sep"] = self.tokens["sep"] or _first(
                    processor, "sep", "eos", self.tokens
                )
            case "TemplateProcessing":
                self._apply_template(_pieces(processor, "single"), _pieces(processor, "pair"))
            case _:
                return

    def _apply_template(self, single: list[_Piece], pair: list[_Piece]) -> None:
        first = single[0].special if len(single) > 1 else None
        last = single[-1].special if len(single) > 1 else None
        if last is not None and self._given and last != self.tokens["eos"]:
            self._replace_eos(last)
        if self._given and not self.tokens["sep"] and self._separates(pair, first, last):
            self.tokens["sep"] = self.tokens["eos"]

    def _replace_eos(self, last: str) -> None:
        """Let what a template ends with be ``eos``, and keep the old one as ``eot``."""
        spare = next((name for name in ("eot", "eom") if name not in self.wanted), None)
        if spare is not None:
            self.wanted.append(spare)
            self.tokens[spare] = self.tokens["eos"]
        self.tokens["eos"] = last

    def _separates(self, pair: list[_Piece], first: str | None, last: str | None) -> bool:
        """Tell whether a template for two texts puts ``eos`` between them: A eos B."""
        if first is not None and pair and pair[0].special == first:
            pair = pair[1:]
        if last is not None and pair and pair[-1].special == last:
            pair = pair[:-1]
        if len(pair) < 3 or pair[0].sequence != "A" or pair[-1].sequence != "B":
            return False
        between = [piece.special for piece in pair[1:-1]]
        separators = (self.tokens["sep"], self.tokens["eos"])
        if between[0] is not None and between[0] in separators and last is None:
            return True
        return len(between) == 2 and between[1] is not None and between[1] in separators


class _Piece(Struct, frozen=True, kw_only=True):
    """One piece of a template: a special token or a text."""

    special: str | None
    sequence: str | None


def _special_ids(
    vocabulary: TokenizerJson | None,
    config: Mapping[str, Json],
    tokenizer_config: Mapping[str, Json] | Absent,
) -> dict[str, int]:
    """Return name -> id; the first id found for a name stays."""
    names = _Names({} if isinstance(tokenizer_config, Absent) else tokenizer_config)
    ids: dict[str, int] = {}
    if vocabulary is not None:
        added = _ids_of_added(vocabulary)
        for processor in post_processors(vocabulary.post_processor):
            names.apply(processor)
        for name in names.wanted:
            content = _content(names.tokens[name])
            if content is not None and content in added:
                ids[name] = added[content]
    for name in names.wanted:
        id_ = _id_in(config, name)
        if id_ is not None:
            ids.setdefault(name, id_)
    return ids


def _id_in(config: Mapping[str, Json], name: str) -> int | None:
    """Return ``<name>_token_id`` of a config; a list of ids is none to the converter.

    ``SpecialVocab`` opens the file itself: it knows a text part by no name but
    ``text_config``, whatever else the converter takes for one.
    """
    value = config.get(f"{name}_token_id")
    text = config.get("text_config")
    if value is None and isinstance(text, dict):
        value = text.get(f"{name}_token_id")
    return value if _is_id(value) else None


def _content(token: Json) -> str | None:
    """Return the text of a token, given as such or as an object with ``content``."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _is_id(value: Json) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _ids_of_added(vocabulary: TokenizerJson) -> dict[str, int]:
    """Return text -> id of the added tokens, the first of equal texts."""
    return {token.content: token.id for token in reversed(vocabulary.added)}


def _pieces(processor: Mapping[str, Json], key: str) -> list[_Piece]:
    pieces = processor.get(key)
    return [
        _Piece(special=_piece_id(piece, "SpecialToken"), sequence=_piece_id(piece, "Sequence"))
        for piece in (pieces if isinstance(pieces, list) else [])
    ]


def _piece_id(piece: Json, kind: str) -> str | None:
    inner = piece.get(kind) if isinstance(piece, dict) else None
    id_ = inner.get("id") if isinstance(inner, dict) else None
    return id_ if isinstance(id_, str) else None


def _first(
    processor: Mapping[str, Json], key: str, otherwise: str, tokens: Mapping[str, Json]
) -> Json:
    pair = processor.get(key)
    return pair[0] if isinstance(pair, list) and pair else tokens[otherwise]

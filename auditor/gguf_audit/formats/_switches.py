"""What the converter makes of "begin every text with bos" and its like.

gguf-py/gguf/vocab.py, ``SpecialVocab``. The release 0.19 that pip installs and the one
in llama.cpp's tree (build 11434) differ: one lets ``tokenizer_config.json`` have the
last word, the other the post-processor. What either writes is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gguf_audit.checkpoint import Json, TokenizerJson
from gguf_audit.parts import Absent

__all__ = ["post_processors", "switches_of"]

_NAMES = ("bos", "eos", "sep")
Switches = dict[str, bool]


def switches_of(
    found: TokenizerJson | None, tokenizer_config: Mapping[str, Json] | Absent
) -> dict[str, tuple[bool | None, ...]]:
    """Return key -> values that a converter writes, ``None`` for none at all."""
    given: Mapping[str, Json] = {}
    if not isinstance(tokenizer_config, Absent):
        given = tokenizer_config
    older, newer = (
        _Reading(given, newer=newer).switches(None if found is None else found.post_processor)
        for newer in (False, True)
    )
    values: dict[str, tuple[bool | None, ...]] = {
        f"add_{name}_token": tuple(dict.fromkeys((newer.get(name), older.get(name))))
        for name in _NAMES
    }
    if found is not None:
        # The converter leaves it to llama.cpp; whoever writes what tokenizers do is right too.
        for name in ("add_bos_token", "add_eos_token"):
            values[name] = (None, False) if values[name] == (None,) else values[name]
    lowercase, strip = _normalized(None if found is None else found.normalizer)
    # Older releases wrote neither, and llama.cpp then lowered everything.
    values["normalizer.lowercase"] = (None,) if lowercase is None else (lowercase,)
    values["normalizer.strip_accents"] = (None,) if strip is None else (strip, None)
    return values


def post_processors(found: Json) -> Iterator[Mapping[str, Json]]:
    """Yield post-processors in order, those of a sequence one by one."""
    if not isinstance(found, dict):
        return
    parts = found.get("processors", [found])
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict):
            yield part


class _Reading:
    """One release's reading of the post-processors."""

    def __init__(self, given: Mapping[str, Json], *, newer: bool) -> None:
        self._newer = newer
        self._given = given
        self._bos: Json = given.get("bos_token") or given.get("cls_token")
        self._cls: Json = given.get("cls_token")
        self._eos: Json = given.get("eos_token") or given.get("sep_token")
        self._sep: Json = given.get("sep_token")
        self._found: Switches = {}

    def switches(self, processor: Json) -> Switches:
        for part in post_processors(processor):
            match part.get("type"):
                case "ByteLevel" if self._newer:
                    self._found.setdefault("bos", False)
                    self._found.setdefault("eos", False)
                case "RobertaProcessing":
                    self._found.update(dict.fromkeys(_NAMES, True))
                    if self._given:
                        self._cls = self._cls or _pair(part, "cls", self._bos)
                        self._sep = self._sep or _pair(part, "sep", self._eos)
                case "TemplateProcessing":
                    self._template(_list(part, "single"), _list(part, "pair"))
                case _:
                    continue
        for name in _NAMES:
            entry = self._given.get(f"add_{name}_token")
            if isinstance(entry, bool) and not (self._newer and name in self._found):
                self._found[name] = entry
        return self._found

    def _template(self, single: list[Json], pair: list[Json]) -> None:
        first = _id(single[0], "SpecialToken") if len(single) > 1 else None
        last = _id(single[-1], "SpecialToken") if len(single) > 1 else None
        if first is not None:
            if not self._given:
                self._bos = first
            elif self._newer and first not in (self._bos, self._cls):
                self._bos = self._bos or first
                self._cls = self._cls or first
            self._found["bos"] = first in (self._bos, self._cls)
        if last is not None:
            self._eos = last
            self._found["eos"] = True
        begin = 1 if first is not None and pair and _id(pair[0], "SpecialToken") == first else 0
        ends = last is not None and bool(pair) and _id(pair[-1], "SpecialToken") == last
        inner = pair[begin : -1 if ends else None]
        if len(inner) < 3 or (_id(inner[0], "Sequence"), _id(inner[-1], "Sequence")) != ("A", "B"):
            return
        separators = (self._sep, self._eos)
        between = [_id(piece, "SpecialToken") for piece in inner[1:-1]]
        single_one = between[0] is not None and between[0] in separators and last is None
        second = len(between) == 2 and between[1] is not None and between[1] in separators
        self._found["sep"] = single_one or second


def _normalized(found: Json) -> tuple[bool | None, bool | None]:
    """Return whether text is lowered, and whether it loses its accents."""
    lowercase: bool | None = None
    strip: bool | None = None
    parts = [found]
    while parts:
        part = parts.pop(0)
        match part.get("type") if isinstance(part, dict) else None, part:
            case "Lowercase", _:
                lowercase = True
            case "StripAccents", _:
                strip = True
            case "BertNormalizer", dict():
                lowered, stripped = part.get("lowercase"), part.get("strip_accents")
                lowercase = lowered if isinstance(lowered, bool) else lowercase
                strip = stripped if isinstance(stripped, bool) else strip
            case "Sequence", dict():
                inner = part.get("normalizers")
                parts = [*(inner if isinstance(inner, list) else []), *parts]
            case _:
                continue
    return lowercase, strip


def _list(part: Mapping[str, Json], key: str) -> list[Json]:
    value = part.get(key)
    return value if isinstance(value, list) else []


def _pair(part: Mapping[str, Json], key: str, otherwise: Json) -> Json:
    value = part.get(key)
    return value[0] if isinstance(value, list) and value else otherwise


def _id(piece: Json, kind: str) -> str | None:
    inner = piece.get(kind) if isinstance(piece, dict) else None
    id_ = inner.get("id") if isinstance(inner, dict) else None
    return id_ if isinstance(id_, str) else None

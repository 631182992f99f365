"""Which vocabulary the official converter makes of a checkpoint's tokenizer files.

``conversion/base.py`` of llama.cpp, build 11434: ``get_vocab_base``,
``_create_vocab_sentencepiece`` and their like; gguf-py/gguf/vocab.py, ``LlamaHfVocab``.
The converter lets ``AutoTokenizer`` read ``tokenizer.json``; we take what that would
say from the files, and allow for more than one answer where its releases differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from gguf_audit.checkpoint import Json, SentencePiece, TokenizerFiles, TokenizerJson, Vocabulary
from gguf_audit.errors import MalformedError
from gguf_audit.formats._departures import vocabulary_size
from gguf_audit.formats._schemes import Scheme, Source, scheme_of
from gguf_audit.formats._switches import switches_of
from gguf_audit.formats._tokenizer_json import TOKENIZER
from gguf_audit.gguf import Gguf
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.text_model import class_of
from gguf_audit.where import Where

__all__ = ["deciding_files", "read_vocabulary", "stored_vocabulary"]

#: ``TokenType`` (gguf-py/gguf/constants.py); 0 stands for any.
_ANY, _NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(7)
#: Score of an added token, and of one that stands for nothing.
_ADDED_SCORE, _PADDING_SCORE = -1000.0, -10000.0
_SPACE = "\u2581"
_BYTE_TEXT = re.compile(r"<0x[0-9A-Fa-f]{2}>")
#: What ``does_token_look_special`` takes for a control token whatever its flag.
_LOOKS_SPECIAL = re.compile(r"<\|.*\|>|<\uff5c.*\uff5c>|<unused.*>", re.DOTALL)
_SPECIAL_TEXTS = frozenset({"<pad>", "<mask>", "<2mass>", "[@BOS@]"})
#: Tokens of Gemma 4 that are always shown (``Gemma4Model.set_vocab``).
_SHOWN = frozenset(
    {
        *("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>"),
        *("<|tool_response>", "<tool_response|>", '<|"|>'),
    }
)
_NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_MODEL = "tokenizer.model"
#: Files that are asked for before tokenizer.json, or instead of it.
_PIECES_OF: Mapping[Source, tuple[str, ...]] = {
    Source.SENTENCEPIECE: (_MODEL,),
    Source.PHI3: (_MODEL,),
    Source.UNIGRAM: (_MODEL, "spiece.model"),
    Source.XLM_ROBERTA: ("sentencepiece.bpe.model",),
}
_WITHOUT_JSON = ("vocab.json", "merges.txt", "vocab.txt", "tekken.json")
#: Of an id, as a key of JSON.
_ID_DIGITS = 10


def deciding_files(config: Mapping[str, Json], names: frozenset[str]) -> Iterator[str]:
    """Yield the files without which nobody knows what ``read_vocabulary`` would return.

    ``names`` are those that are there; of others it may not be known.
    """
    yield from (TOKENIZER, "tokenizer_config.json", "added_tokens.json")
    for source in scheme_of(class_of(config)).sources:
        for name in _PIECES_OF.get(source, ()):
            yield name
            if name in names:
                return
    yield "special_tokens_map.json"
    if TOKENIZER not in names:
        yield from _WITHOUT_JSON


def read_vocabulary(
    files: TokenizerFiles,
    *,
    config: Mapping[str, Json],
    tokenizer_config: Mapping[str, Json] | Absent,
) -> Vocabulary | Absent:
    """Return the vocabulary that the converter writes for a checkpoint folder.

    Absent where it reads files that aren't there, or in a way that we don't know.
    Raises MalformedError and LimitError for files that aren't what their names say.
    """
    name = class_of(config)
    scheme = scheme_of(name)
    settings: Mapping[str, Json] = {}
    if not isinstance(tokenizer_config, Absent):
        settings = tokenizer_config
    maker = _Maker(files=files, config=config, settings=settings)
    if TOKENIZER not in files.names and "tekken.json" in files.names:
        return Absent("tekken.json is read by mistral-common")
    for source in scheme.sources:
        made = maker.make(source)
        if made is not None:
            return made if isinstance(made, Absent) else _switched(made, maker, scheme, source)
    return Absent(f"the files from which the converter reads the vocabulary of {name} are missing")


def stored_vocabulary(gguf: Gguf) -> Vocabulary | Absent:
    """Return a file's own vocabulary, where it is the reference for others."""
    model = gguf.string("tokenizer.ggml.model")
    tokens = gguf.array("tokenizer.ggml.tokens")
    if model is None or tokens is None:
        return Absent(f"{gguf.name} has no vocabulary")
    types = gguf.array("tokenizer.ggml.token_type")
    scores = gguf.array("tokenizer.ggml.scores")
    merges = gguf.array("tokenizer.ggml.merges")
    return Vocabulary(
        model=model,
        texts=[text if isinstance(text, str) else None for text in tokens.items()],
        types=[_NORMAL] * tokens.count
        if types is None
        else [item if type(item) is int else _ANY for item in types.items()],
        scores=None
        if scores is None
        else [float(item) for item in scores.items() if isinstance(item, int | float)],
        merges=None if merges is None else tuple(map(str, merges.items())),
        switches={
            name: (value,)
            for name in _SWITCHES
            if isinstance(value := _value(gguf, name), bool) or value is None
        },
    )


_SWITCHES = (
    *("add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix"),
    *("remove_extra_whitespaces", "normalizer.lowercase", "normalizer.strip_accents"),
)


def _value(gguf: Gguf, name: str) -> object:
    found = gguf.fields.get(f"tokenizer.ggml.{name}")
    return None if found is None else found.value


def _switched(made: Vocabulary, maker: _Maker, scheme: Scheme, source: Source) -> Vocabulary:
    """Add what the converter writes of switches; what it writes last is what stays."""
    json_ = maker.files.json
    found = switches_of(None if isinstance(json_, Absent) else json_, maker.settings or Absent(""))
    for name, value in scheme.before.items():
        values = found.get(name, (None,))
        found[name] = tuple(dict.fromkeys(value if one is None else one for one in values))
    after = dict(scheme.after)
    if "add_space_prefix" in after and source is Source.BPE:
        del after["add_space_prefix"]
    asked = maker.settings.get("add_prefix_space")
    if scheme.asks_prefix != "no" and isinstance(asked, bool):
        after["add_space_prefix"] = asked
    elif scheme.asks_prefix == "or false" and "add_prefix_space" in maker.settings:
        found["add_space_prefix"] = (False, None)
    if source is Source.LLAMA_HF and scheme.asks_prefix == "no":
        after["add_space_prefix"] = False
    if scheme.asks_prefix == "or none" and vocabulary_size(maker.config) == 49_152:
        # conversion/llama.py, LlamaModel.set_vocab: small Granite models
        after["add_bos_token"] = False
    return replace(
        made,
        switches={**found, **made.switches, **{name: (value,) for name, value in after.items()}},
    )


class _Token(Struct, frozen=True, kw_only=True):
    """What the files say of one added token."""

    text: str
    #: It may be special, it may be not.
    special: frozenset[bool]
    normalized: bool = False


class _Draft(Struct):
    """A vocabulary that is being made."""

    texts: list[str | None]
    types: list[int]
    scores: list[float]
    other_texts: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    other_types: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])

    def put(self, id_: int, text: str, type_: int, score: float = _ADDED_SCORE) -> None:
        """Let an id stand for a text."""
        self.grow(id_ + 1)
        self.texts[id_], self.types[id_], self.scores[id_] = text, type_, score

    def grow(self, size: int) -> None:
        """Have as many ids, new ones without a token."""
        more = size - len(self.texts)
        if more > 0:
            self.texts += [None] * more
            self.types += [_UNUSED] * more
            self.scores += [_PADDING_SCORE] * more


class _Maker(Struct, frozen=True, kw_only=True):
    """Makes a vocabulary out of one kind of files after the other."""

    files: TokenizerFiles
    config: Mapping[str, Json]
    #: ``tokenizer_config.json``.
    settings: Mapping[str, Json]

    def make(self, source: Source) -> Vocabulary | Absent | None:
        """Return what one source gives, ``None`` where the converter tries the next."""
        match source:
            case Source.BPE:
                return self._auto()
            case Source.WORD_PIECE:
                return self._word_piece()
            case Source.SENTENCEPIECE:
                return self._sentencepiece(phi3=False)
            case Source.PHI3:
                if self.settings.get("tokenizer_class") == "GPT2Tokenizer":
                    return self._auto()
                return self._sentencepiece(phi3=True)
            case Source.LLAMA_HF | Source.GEMMA4:
                return self._llama_hf(gemma4=source is Source.GEMMA4)
            case Source.UNIGRAM:
                return self._unigram()
            case Source.XLM_ROBERTA:
                return self._xlm_roberta()
            case Source.UNKNOWN:
                return Absent(
                    f"the converter reads the vocabulary of {class_of(self.config)} by"
                    " code of its own"
                )
            case _ as never:
                assert_never(never)

    # AutoTokenizer

    def _auto(self) -> Vocabulary | Absent | None:
        """``get_vocab_base``."""
        found = self.files.json
        if isinstance(found, Absent):
            return self._slow()
        if _is_pieces(found) and not _is_byte_level(found):
            return Absent(
                f"the converter takes the pieces of tokenizer.json for bytes: {class_of(self.config)}"
                " is one that it wants tokenizer.model of"
            )
        draft = _base(found)
        for id_, token in self._added(found).items():
            _add(draft, id_, token)
        self._promote_named(draft, found)
        return Vocabulary(
            model="gpt2",
            texts=draft.texts,
            types=draft.types,
            merges=found.merges or None,
            other_texts=draft.other_texts,
            other_types=draft.other_types,
            strays=self._strays(found),
        )

    def _slow(self) -> Vocabulary | Absent | None:
        """Read what tokenizers had before tokenizer.json."""
        if "vocab.json" not in self.files.names:
            return None
        vocabulary = self.files.load_object("vocab.json")
        if isinstance(vocabulary, Absent):
            return vocabulary
        found = TokenizerJson(model="BPE", ids=_ids(vocabulary, "vocab.json"), size=0)
        draft = _base(found)
        for id_, token in self._added(found).items():
            _add(draft, id_, token)
        self._promote_named(draft, found)
        lines = self.files.load_text("merges.txt")
        return Vocabulary(
            model="gpt2",
            texts=draft.texts,
            types=draft.types,
            merges=None if isinstance(lines, Absent) else (*_merge_lines(lines),),
            other_texts=draft.other_texts,
            other_types=draft.other_types,
            strays=self._strays(found),
        )

    def _word_piece(self) -> Vocabulary | Absent | None:
        """``BertModel.set_vocab``: texts begin with a space unless they go on a word."""
        found = self.files.json
        if isinstance(found, Absent):
            lines = self.files.load_text("vocab.txt")
            if isinstance(lines, Absent):
                return None
            ids = {text: id_ for id_, text in enumerate(lines.removesuffix("\n").split("\n"))}
            found = TokenizerJson(model="WordPiece", ids=ids)
        elif found.model == "Unigram":
            return None
        draft = _base(found)
        for id_, token in self._added(found).items():
            _add(draft, id_, token)
        self._promote_named(draft, found)
        texts = [
            text if text is None or type_ == _CONTROL else _phantom(text)
            for text, type_ in zip(draft.texts, draft.types, strict=True)
        ]
        others = {
            id_: frozenset({text, _phantom(text)})
            for id_ in draft.other_types
            if (text := draft.texts[id_]) is not None
        }
        return Vocabulary(
            model="bert",
            texts=texts,
            types=draft.types,
            other_texts={**draft.other_texts, **others},
            other_types=draft.other_types,
            strays=self._strays(found),
        )

    def _llama_hf(self, *, gemma4: bool) -> Vocabulary | Absent | None:
        """``LlamaHfVocab``: byte-pair encoding as pieces whose scores say nothing."""
        found = self.files.json
        if isinstance(found, Absent) or found.model != "BPE":
            return None
        if not _is_pieces(found):
            return None
        draft = _base(found)
        base = len(found.ids)
        named = self._named()
        for id_, text in enumerate(draft.texts):
            if text is not None and _BYTE_TEXT.fullmatch(text):
                draft.types[id_] = _BYTE
        for token in found.added:
            kept = _NORMAL if token.id < base else _USER_DEFINED
            draft.put(token.id, token.content, _CONTROL if token.content in named else kept)
            if token.special or token.content in named or _looks_special(token.content):
                # Which of them are special is asked of transformers, release by release.
                draft.other_types[token.id] = frozenset({kept, _CONTROL})
            if gemma4 and token.content in _SHOWN:
                draft.types[token.id] = _USER_DEFINED
        if gemma4:
            for id_, text in enumerate(draft.texts):
                if text in _SHOWN:
                    draft.types[id_] = _USER_DEFINED
        draft.scores = [_ADDED_SCORE] * len(draft.texts)
        return Vocabulary(
            model="gemma4" if gemma4 else "llama",
            texts=draft.texts,
            types=draft.types,
            scores=draft.scores,
            merges=found.merges if gemma4 else None,
            other_types=draft.other_types,
            strays=self._strays(found),
        )

    # SentencePiece

    def _sentencepiece(self, *, phi3: bool) -> Vocabulary | Absent | None:
        """``_create_vocab_sentencepiece``, and ``Phi3MiniModel.set_vocab``."""
        if _MODEL not in self.files.names:
            return None
        found = self.files.load_sentencepiece(_MODEL)
        if isinstance(found, Absent):
            return found
        size = self._rows(len(found.texts))
        draft = _pieces(found, size)
        for text, id_ in self._added_ids().items():
            if id_ < size:
                draft.put(id_, text, _USER_DEFINED)
        for id_, text, special in self._decoder():
            if id_ >= size:
                continue
            if special or (not phi3 and _looks_special(text)):
                draft.put(id_, text, _CONTROL)
            else:
                draft.put(id_, text if phi3 else text.replace(_SPACE, " "), _USER_DEFINED)
        if phi3:
            json_ = self.files.json
            for token in () if isinstance(json_, Absent) else json_.added:
                if token.id < size:
                    type_ = _CONTROL if token.special else _USER_DEFINED
                    draft.put(token.id, token.content, type_)
        return Vocabulary(
            model="llama",
            texts=draft.texts,
            types=draft.types,
            scores=draft.scores,
            strays=frozenset({*self._added_ids(), *(text for _, text, _ in self._decoder())}),
        )

    def _unigram(self) -> Vocabulary | Absent | None:
        """``T5Model.set_vocab``."""
        name = _MODEL if _MODEL in self.files.names else "spiece.model"
        if name not in self.files.names:
            return None
        found = self.files.load_sentencepiece(name)
        if isinstance(found, Absent):
            return found
        if found.model_type == 2:
            return self._sentencepiece(phi3=False)
        size = self._rows(len(found.texts))
        draft = _pieces(found, size)
        for text, id_ in self._added_ids().items():
            if id_ < size:
                draft.put(id_, text, _USER_DEFINED)
        return _of_unigrams(draft, found.add_dummy_prefix, found.remove_extra_whitespaces)

    def _xlm_roberta(self) -> Vocabulary | Absent | None:
        """``_xlmroberta_set_vocab``."""
        name = "sentencepiece.bpe.model"
        if name not in self.files.names:
            return self._unigram_json()
        found = self.files.load_sentencepiece(name)
        if isinstance(found, Absent):
            return found
        draft = _pieces(found, len(found.texts))
        # Pieces are put where fairseq had them: four of its own in front, the last cut.
        front = (("<s>", _CONTROL), ("<pad>", _CONTROL), ("</s>", _CONTROL), ("<unk>", _UNKNOWN))
        draft.texts = [*(text for text, _ in front), *draft.texts[3:-1]]
        draft.types = [*(type_ for _, type_ in front), *draft.types[3:-1]]
        draft.scores = [*(0.0 for _ in front), *draft.scores[3:-1]]
        # What stands behind them depends on the class and on padding.
        made = _of_unigrams(draft, found.add_dummy_prefix, found.remove_extra_whitespaces)
        return replace(made, strays=frozenset({"<mask>", *found.texts[-1:]}))

    def _unigram_json(self) -> Vocabulary | Absent | None:
        found = self.files.json
        if isinstance(found, Absent):
            return None
        if not found.scores:
            return Absent("the converter wants the pieces of a Unigram model in tokenizer.json")
        draft = _base(found)
        draft.scores = [*found.scores, *draft.scores[len(found.scores) :]]
        unknown = found.options.get("unk_id")
        named = self._named()
        for token in found.added:
            if token.id < len(found.ids):
                type_ = _CONTROL if token.content in named else _USER_DEFINED
                draft.put(token.id, token.content, type_, found.scores[token.id])
                draft.other_types[token.id] = frozenset({_CONTROL, _USER_DEFINED, _UNKNOWN})
        if type(unknown) is int and 0 <= unknown < len(draft.types):
            draft.types[unknown] = _UNKNOWN
        return replace(_of_unigrams(draft, None, None), strays=self._strays(found))

    # What the other files say

    def _rows(self, pieces: int) -> int:
        """Return how many tokens are written: those that have an embedding.

        Where config.json doesn't say, transformers has a default that we don't know:
        then only the pieces are sure to be.
        """
        size = vocabulary_size(self.config)
        if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
            return pieces
        if size > LIMITS.vocabulary_tokens:
            raise MalformedError(f"vocab_size is {size}", where=Where(key="vocab_size"))
        return size

    def _added_ids(self) -> dict[str, int]:
        found = self.files.load_object("added_tokens.json")
        return {} if isinstance(found, Absent) else _ids(found, "added_tokens.json")

    def _decoder(self) -> Iterator[tuple[int, str, bool]]:
        """Yield id, text and flag of tokenizer_config.json's ``added_tokens_decoder``."""
        found = self.settings.get("added_tokens_decoder")
        for key, entry in found.items() if isinstance(found, dict) else ():
            text = entry.get("content") if isinstance(entry, dict) else None
            if not isinstance(entry, dict) or not isinstance(text, str):
                continue
            # Longer ones are no ids, and some can't even be numbers.
            if not key.isascii() or not key.isdecimal() or len(key) > _ID_DIGITS:
                continue
            if int(key) < LIMITS.vocabulary_tokens:
                yield int(key), text, entry.get("special") is True

    def _named(self) -> frozenset[str]:
        """Return the tokens that the tokenizer's settings name, special by that alone."""
        settings = [self.settings]
        more = self.files.load_object("special_tokens_map.json")
        if not isinstance(more, Absent):
            settings.append(more)
        named: set[str] = set()
        for setting in settings:
            for name in _NAMED:
                named.update(_texts(setting.get(f"{name}_token")))
            for key in ("additional_special_tokens", "extra_special_tokens"):
                value = setting.get(key)
                values = list(value.values()) if isinstance(value, dict) else value
                for entry in values if isinstance(values, list) else []:
                    named.update(_texts(entry))
        return frozenset(named)

    def _added(self, found: TokenizerJson) -> dict[int, _Token]:
        """Return id -> added token, from every file that has some."""
        tokens: dict[int, _Token] = {
            token.id: _Token(
                text=token.content,
                special=frozenset({token.special}),
                normalized=token.normalized,
            )
            for token in found.added
        }
        texts = {token.text for token in tokens.values()}

        def is_its_own(text: str, id_: int) -> bool:
            return found.ids.get(text, None if text in texts else id_) == id_

        for id_, text, special in self._decoder():
            known = tokens.get(id_)
            if known is not None and known.text == text:
                tokens[id_] = replace(known, special=known.special | {special})
            elif known is None and is_its_own(text, id_):
                tokens[id_] = _Token(text=text, special=frozenset({special}))
        for text, id_ in self._added_ids().items():
            if id_ not in tokens and is_its_own(text, id_):
                tokens[id_] = _Token(text=text, special=frozenset({False, True}))
        named = self._named()
        return {
            id_: replace(token, special=token.special | {True}) if token.text in named else token
            for id_, token in tokens.items()
        }

    def _promote_named(self, draft: _Draft, found: TokenizerJson) -> None:
        """Let tokens that are only named be added ones, as transformers may make them."""
        for text in self._named():
            id_ = found.ids.get(text)
            if id_ is not None and draft.types[id_] == _NORMAL:
                draft.other_types[id_] = frozenset({_NORMAL, _CONTROL})

    def _strays(self, found: TokenizerJson) -> frozenset[str]:
        texts = self._named() | {text for _, text, _ in self._decoder()} | self._added_ids().keys()
        return frozenset(texts) - found.ids.keys()


def _is_pieces(found: TokenizerJson) -> bool:
    """Tell whether byte-pair encoding falls back to bytes spelled ``<0x0A>``.

    ``LlamaHfVocab`` also wants a decoder of several steps; without a decoder it raises what
    its caller takes for a vocabulary of bytes, and nothing comes of that.
    """
    return found.model == "BPE" and found.options.get("byte_fallback") is True


def _is_byte_level(found: TokenizerJson) -> bool:
    """Tell whether texts are cut into bytes, each spelled as a character of its own."""
    steps: list[Json] = [found.pre_tokenizer, found.decoder]
    while steps:
        step = steps.pop()
        if isinstance(step, dict):
            if step.get("type") == "ByteLevel":
                return True
            inner = step.get("pretokenizers") or step.get("decoders")
            steps += inner if isinstance(inner, list) else []
    return False


def _base(found: TokenizerJson) -> _Draft:
    """Return a draft with the tokens of the model, all of them normal."""
    size = max(found.size, 1 + max(found.ids.values(), default=-1))
    draft = _Draft([None] * size, [_UNUSED] * size, [_PADDING_SCORE] * size)
    for text, id_ in found.ids.items():
        draft.texts[id_] = text
        draft.types[id_] = _NORMAL
    return draft


def _add(draft: _Draft, id_: int, token: _Token) -> None:
    """Put an added token the way that ``get_vocab_base`` does."""
    looks = _looks_special(token.text)
    types = {_CONTROL if special or looks else _USER_DEFINED for special in token.special}
    text = token.text if types == {_CONTROL} else token.text.replace(_SPACE, " ")
    draft.put(id_, text, _CONTROL if types == {_CONTROL} else _USER_DEFINED)
    if len(types) > 1:
        draft.other_types[id_] = frozenset(types)
    # Encoded and decoded again a token may lose what its decoder strips.
    others = {token.text, token.text.strip(), text.strip()} - {text}
    if others:
        draft.other_texts[id_] = frozenset(others)


def _pieces(found: SentencePiece, size: int) -> _Draft:
    texts: list[str | None] = list(found.texts[:size])
    draft = _Draft(texts, list(found.types[:size]), list(found.scores[:size]))
    # A piece of SentencePiece's own user-defined type is a normal one to the converter.
    draft.types = [_NORMAL if type_ == _USER_DEFINED else type_ for type_ in draft.types]
    draft.grow(size)
    return draft


def _of_unigrams(draft: _Draft, prefix: bool | None, extra: bool | None) -> Vocabulary:
    switches: dict[str, tuple[bool | None, ...]] = {}
    if prefix is not None:
        switches["add_space_prefix"] = (prefix,)
    if extra is not None:
        switches["remove_extra_whitespaces"] = (extra,)
    return Vocabulary(
        model="t5",
        texts=draft.texts,
        types=draft.types,
        scores=draft.scores,
        other_types=draft.other_types,
        switches=switches,
    )


def _merge_lines(text: str) -> Iterator[str]:
    """Yield the merges of a merges.txt (``_try_load_merges_txt``)."""
    lines = text.split("\n")
    for line in lines[1:] if lines[0].startswith("#") else lines:
        parts = line.split()
        if len(parts) == 2:
            yield f"{parts[0]} {parts[1]}"


def _phantom(text: str) -> str:
    return text[2:] if text.startswith("##") else _SPACE + text


def _looks_special(text: str) -> bool:
    return text in _SPECIAL_TEXTS or _LOOKS_SPECIAL.fullmatch(text) is not None


def _texts(entry: Json) -> list[str]:
    content = entry.get("content") if isinstance(entry, dict) else entry
    return [content] if isinstance(content, str) else []


def _ids(found: Mapping[str, Json], name: str) -> dict[str, int]:
    ids: dict[str, int] = {}
    for text, id_ in found.items():
        if type(id_) is not int or not 0 <= id_ < LIMITS.vocabulary_tokens:
            raise MalformedError(f"{name} has to be an object of ids", where=Where(file=name))
        ids[text] = id_
    return ids

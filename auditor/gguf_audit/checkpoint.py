"""The checkpoint that a file was made from, as values.

Nothing here reads a file. ``formats.checkpoint`` makes these values; tensor lists and
tokenizers stay on disk until somebody asks for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent, Loading

__all__ = [
    "AddedToken",
    "Checkpoint",
    "Json",
    "PeftAdapter",
    "ReferenceOrigin",
    "SentencePiece",
    "StoredTensor",
    "TemplateFile",
    "Tokenizer",
    "TokenizerFiles",
    "TokenizerJson",
    "Vocabulary",
    "non_finite",
]

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
ReferenceOrigin = Literal["hub", "cache", "card", "folder", "config", "gguf"]


class StoredTensor(Struct, frozen=True, kw_only=True):
    """One tensor of a safetensors checkpoint: its dtype and its shape, outermost first."""

    dtype: str
    shape: tuple[int, ...]


class PeftAdapter(Struct, frozen=True, kw_only=True):
    """A low-rank adapter as the peft library stores it."""

    #: ``adapter_config.json`` as published.
    config: Mapping[str, Json]
    tensors: Mapping[str, StoredTensor] | Absent


class Tokenizer(Struct, frozen=True, kw_only=True):
    """What a reference says of its tokenizer, as far as that is certain."""

    #: ``bos``, ``eos``, ``unk``, ``sep``, ``pad``, ``cls``, ``mask``, ``eot``, ``eom``
    #: -> id, exactly as the converter would write it.
    special_ids: Mapping[str, int]
    #: Names for which the converter writes an id as well, but which one isn't known:
    #: ``config.json`` has an integer, and a tokenizer that isn't at hand may know better.
    unsure_ids: frozenset[str] = frozenset()
    #: The converter writes no others; False where a tokenizer that isn't at hand may
    #: add some.
    complete: bool = True
    #: Number of tokens with the added ones, padding rows not included.
    size: int | None = None


class AddedToken(Struct, frozen=True, kw_only=True):
    """One of the ``added_tokens`` of a ``tokenizer.json``."""

    id: int
    content: str
    special: bool = False
    #: Text is normalized before the token is looked for.
    normalized: bool = False
    #: It swallows spaces on its left, on its right; it only stands between words.
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


class TokenizerJson(Struct, frozen=True, kw_only=True):
    """A ``tokenizer.json``; sections that nobody compares stand as they do there."""

    #: ``BPE``, ``Unigram``, ``WordPiece`` or ``WordLevel``; "" where it doesn't say.
    model: str
    #: Text -> id, without added tokens; texts as they are stored, of equal ones the last.
    ids: Mapping[str, int]
    #: Score per id, of Unigram alone; else empty.
    scores: Sequence[float] = ()
    #: In order of rank, as a file has them: two parts with a space between, and of pairs
    #: a space inside a part as U+0120 (``SpecialVocab``). Empty where the model has none.
    merges: Sequence[str] = ()
    added: tuple[AddedToken, ...] = ()
    #: What is left of the model: ``byte_fallback``, ``ignore_merges``, ``unk_token``...
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    normalizer: Json = None
    pre_tokenizer: Json = None
    post_processor: Json = None
    decoder: Json = None
    #: Highest id + 1, added tokens included.
    size: int = 0


class SentencePiece(Struct, frozen=True, kw_only=True):
    """A SentencePiece model: ``tokenizer.model``, ``spiece.model`` and their like."""

    #: Text, score and type (``sentencepiece_model.proto``: 1 normal, 2 unknown, 3
    #: control, 4 user defined, 5 unused, 6 byte) of every piece, by id.
    texts: Sequence[str]
    scores: Sequence[float]
    types: Sequence[int]
    #: ``trainer_spec.model_type``: 1 unigram, 2 BPE, 3 words, 4 characters.
    model_type: int = 1
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    precompiled_charsmap: bytes = b""


class TokenizerFiles(Loading, frozen=True, kw_only=True):
    """The files of a reference's tokenizer; each is read once, when it is asked for."""

    #: Of all files of the folder.
    names: frozenset[str]
    load_json: Callable[[], TokenizerJson | Absent]
    #: Of ``tokenizer.json``, for who runs it.
    load_bytes: Callable[[], bytes | Absent]
    #: By the name of the file.
    load_sentencepiece: Callable[[str], SentencePiece | Absent]
    #: ``added_tokens.json``, ``special_tokens_map.json``, ``1_Pooling/config.json``...
    load_object: Callable[[str], Mapping[str, Json] | Absent]
    #: ``vocab.txt``, ``merges.txt``...
    load_text: Callable[[str], str | Absent]

    @property
    def json(self) -> TokenizerJson | Absent:
        """``tokenizer.json``; the first call reads it (AuditError)."""
        return self.load_json()


class Vocabulary(Struct, frozen=True, kw_only=True):
    """The vocabulary that a right conversion has."""

    #: ``tokenizer.ggml.model``.
    model: str
    #: By id; ``None`` where the reference has no token, so that a file has padding.
    texts: Sequence[str | None]
    #: ``TokenType`` by id; 0 where any is right.
    types: Sequence[int]
    #: By id; ``None`` where a conversion has none.
    scores: Sequence[float] | None = None
    #: ``None`` where a conversion has none.
    merges: Sequence[str] | None = None
    #: Id -> more texts, more types that are as right: what is written depends on the
    #: release of the libraries that a converter runs with.
    other_texts: Mapping[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    other_types: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    #: Texts of tokens without an id of their own: libraries append them.
    strays: frozenset[str] = frozenset()
    #: Key without ``tokenizer.ggml.`` -> values that are right, ``None`` for no key.
    switches: Mapping[str, tuple[bool | None, ...]] = field(
        default_factory=dict[str, tuple[bool | None, ...]]
    )


class TemplateFile(Struct, frozen=True, kw_only=True):
    """A chat template of a reference, as it stands there."""

    #: ``default``, or the name that the reference gives it.
    name: str
    #: What holds it: a file of the folder, a key of a GGUF.
    place: str
    text: str


class Checkpoint(Loading, frozen=True, kw_only=True):
    """The reference: the Hugging Face checkpoint that a file was made from."""

    #: Hub id, path or card id.
    id: str
    #: Commit, where one is known.
    revision: str | None = None
    origin: ReferenceOrigin
    #: False for figures that are not a published config's own: they may warn, never err.
    published: bool = True
    #: What to tell the user about this reference, "" for nothing.
    note: str = ""
    #: How this reference was come by, where that needs saying; no part of a card.
    found: str = ""
    #: ``config.json`` as published.
    config: Mapping[str, Json] | Absent
    generation_config: Mapping[str, Json] | Absent
    tokenizer_config: Mapping[str, Json] | Absent
    #: Name -> template, ``default`` first; empty where the checkpoint has none.
    chat_templates: Mapping[str, str] | Absent
    #: Reads the safetensors headers when they are first asked for.
    load_tensors: Callable[[], Mapping[str, StoredTensor] | Absent]
    #: Reads the tokenizer when it is first asked for.
    load_tokenizer: Callable[[], Tokenizer | Absent]
    #: The files themselves; Absent where the reference is no folder with a tokenizer.
    tokenizer_files: TokenizerFiles | Absent = Absent("the reference has no tokenizer files")
    #: Makes the expected vocabulary when it is first asked for.
    load_vocabulary: Callable[[], Vocabulary | Absent] = lambda: Absent(
        "the reference has no vocabulary"
    )
    #: Reads how images and sounds are prepared (``preprocessor_config.json`` and
    #: ``processor_config.json``, merged as the converter does) when first asked.
    load_preprocessor: Callable[[], Mapping[str, Json] | Absent] = lambda: Absent(
        "it doesn't say how images are prepared"
    )
    #: Reads how sentence vectors are made (``llama_pooling_type``, ``None`` for not at all)
    #: when it is first asked for.
    load_pooling: Callable[[], int | Absent | None] = lambda: Absent(
        "it doesn't say how sentence vectors are made"
    )
    #: Reads the PEFT adapter of the folder when it is first asked for.
    load_adapter: Callable[[], PeftAdapter | Absent] = lambda: Absent("it is no adapter's folder")
    #: Reads every chat template that it has, in the order in which transformers prefers
    #: them; not only those that the converter writes.
    load_template_files: Callable[[], tuple[TemplateFile, ...]] | None = None
    #: The model itself, where another GGUF is the reference: its metadata are expected.
    gguf: Gguf | None = None

    @property
    def documents(self) -> Mapping[str, Mapping[str, Json]]:
        """Name of a file -> what it holds, of those configurations that are there."""
        found = {
            "config.json": self.config,
            "generation_config.json": self.generation_config,
            "tokenizer_config.json": self.tokenizer_config,
        }
        return {name: each for name, each in found.items() if not isinstance(each, Absent)}

    @property
    def tensors(self) -> Mapping[str, StoredTensor] | Absent:
        """Name -> dtype and shape; the first call reads the headers (AuditError)."""
        return self.load_tensors()

    @property
    def preprocessor(self) -> Mapping[str, Json] | Absent:
        """How images and sounds are prepared; the first call reads it (AuditError)."""
        return self.load_preprocessor()

    @property
    def adapter(self) -> PeftAdapter | Absent:
        """The PEFT adapter of the folder; the first call reads it (AuditError)."""
        return self.load_adapter()

    @property
    def template_files(self) -> tuple[TemplateFile, ...]:
        """Every chat template that it has; the first call reads them (AuditError)."""
        if self.load_template_files is not None:
            return self.load_template_files()
        if isinstance(self.chat_templates, Absent):
            return ()
        return tuple(
            TemplateFile(name=name, place=self.id, text=text)
            for name, text in self.chat_templates.items()
        )

    @property
    def tokenizer(self) -> Tokenizer | Absent:
        """What the reference says of its tokenizer; the first call reads it (AuditError)."""
        return self.load_tokenizer()

    @property
    def vocabulary(self) -> Vocabulary | Absent:
        """What vocabulary a right conversion has; the first call makes it (AuditError)."""
        return self.load_vocabulary()


def non_finite(value: Json, place: str = "") -> Iterator[tuple[str, float]]:
    """Yield where a document holds no finite number, ``time_step_limit[1]``, and which."""
    # Recursion is bounded: whoever parsed the value bounded its depth.
    match value:
        case float() if not math.isfinite(value):
            yield place, value
        case dict():
            for key, member in value.items():
                yield from non_finite(member, f"{place}.{key}" if place else key)
        case list():
            for index, item in enumerate(value):
                yield from non_finite(item, f"{place}[{index}]")
        case _:
            return

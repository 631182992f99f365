"""What is audited, as values: a GGUF file or set, and the checkpoint it came from.

Nothing here reads a file. ``formats`` makes these values; arrays and tokenizers are
the two parts that stay on disk until somebody asks for them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field

from gguf_audit.errors import LimitError, Refused
from gguf_audit.fingerprints import Fingerprints
from gguf_audit.limits import LIMITS
from gguf_audit.where import Where

__all__ = [
    "Absent",
    "AddedToken",
    "Array",
    "Card",
    "Checkpoint",
    "Field",
    "Fields",
    "FileFacts",
    "Gguf",
    "Json",
    "Loading",
    "Origin",
    "PeftAdapter",
    "ReferenceOrigin",
    "Scalar",
    "SentencePiece",
    "StoredTensor",
    "T",
    "Tail",
    "TemplateFile",
    "Tensor",
    "TensorType",
    "Tokenizer",
    "TokenizerFiles",
    "TokenizerJson",
    "Value",
    "ValueType",
    "Vocabulary",
]

Scalar = int | float | bool | str
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
T = TypeVar("T")
ReferenceOrigin = Literal["hub", "cache", "card", "folder", "gguf"]


class Loading(Struct, frozen=True, kw_only=True):
    """A value that reads more of itself when somebody asks.

    How it does that, the fields whose names begin with ``load``, doesn't count where two are
    compared.
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name)
            for name in self.__struct_fields__
            if not name.startswith("load")
        )

    __hash__ = None  # type: ignore[assignment]  # as of any value with mappings inside


class Absent(Struct, frozen=True):
    """A part that isn't there, and why."""

    reason: str


class ValueType(enum.IntEnum):
    """Type of a metadata value (``gguf_type`` in ggml/include/gguf.h)."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


class Origin(enum.StrEnum):
    """Where an effective value comes from."""

    KEY = "key"
    RUNTIME_DEFAULT = "runtime default"
    SHAPE = "shape"


class Value(Struct, Generic[T], frozen=True, kw_only=True):
    """An effective value and where it comes from."""

    value: T
    origin: Origin
    #: Full metadata key that holds it, or would hold it.
    key: str


def _nothing() -> Iterator[bytes]:
    return iter(())


class Array(Loading, frozen=True, kw_only=True):
    """A metadata array that stays on disk until its items are asked for."""

    #: ``ARRAY`` where items are themselves arrays: legal, but llama.cpp refuses them.
    item_type: ValueType
    count: int
    #: First item's offset and the bytes of all items, lengths included.
    offset: int
    size_bytes: int
    #: Reads and decodes every item. Strings that aren't UTF-8 keep their bytes as
    #: lone surrogates (``surrogateescape``). Raises AuditError.
    load: Callable[[], Sequence[Scalar]]
    #: Reads the same bytes without decoding them, piece by piece. Raises AuditError.
    load_stored: Callable[[], Iterator[bytes]] = _nothing
    #: Reads some strings and keeps no other: those with these indexes, and those that
    #: begin with one of these texts. ``None`` where only all of them can be read.
    load_some: Callable[[frozenset[int], tuple[str, ...]], Mapping[int, str]] | None = None
    #: Reads strings as they are stored, some at a time, and what tells equal ones.
    #: ``None`` where they are no strings, or in no file.
    load_texts: Callable[[], Iterator[Sequence[bytes]]] | None = None
    load_fingerprints: Callable[[], Fingerprints] | None = None

    def __len__(self) -> int:
        return self.count

    def items(self) -> Sequence[Scalar]:
        """Return every item; the first call reads them."""
        return self.load()

    def stored(self) -> Iterator[bytes]:
        """Yield the bytes of all items as they stand in the file."""
        return self.load_stored()

    def some(self, indexes: Iterable[int], starts: tuple[str, ...]) -> Mapping[int, str]:
        """Return index -> string of those with an index, or that begin with such a text.

        For a few of many: a vocabulary as a whole takes 20 MB and a tenth of a second.
        """
        wanted = frozenset(indexes)
        if self.load_some is not None:
            return self.load_some(wanted, starts)
        return {
            index: item
            for index, item in enumerate(self.items())
            if isinstance(item, str) and (index in wanted or item.startswith(starts))
        }

    def texts(self) -> Iterator[bytes]:
        """Yield every string as it is stored, and keep none; others are passed over.

        For a look at all of many: half the time of ``items``, and no memory.
        """
        if self.load_texts is not None:
            return chain.from_iterable(self.load_texts())
        strings = (item for item in self.items() if isinstance(item, str))
        return (string.encode("utf-8", "surrogateescape") for string in strings)

    def fingerprints(self) -> Fingerprints:
        """Return what tells equal strings, made once."""
        if self.load_fingerprints is not None:
            return self.load_fingerprints()
        return Fingerprints(self.texts())


class Field(Struct, frozen=True, kw_only=True):
    """One metadata key of a file, or one that a converter would write."""

    key: str
    #: ``None`` where the value was derived and no file has typed it.
    type: ValueType | None
    value: Scalar | Array | tuple[Scalar, ...]
    #: Byte offset of the key in its file.
    offset: int | None = None
    #: The byte of a bool that is stored as neither 0 nor 1; llama.cpp takes it for true.
    odd_bool: int | None = None


class TensorType(Struct, frozen=True, kw_only=True):
    """A ggml tensor type: how many elements make a block of how many bytes."""

    id: int
    #: Name in ggml.h without ``GGML_TYPE_``; ``type 9999`` where nobody knows it.
    name: str
    #: ``None`` where the type is unknown and an extent can't be computed.
    block_elements: int | None
    block_bytes: int | None
    #: Extra bytes in front of every row (some ik_llama.cpp types).
    row_header_bytes: int = 0
    #: Engine without which the tensor can't be read, where it isn't llama.cpp.
    needs: str | None = None
    #: ggml knew it once and reads it no longer.
    removed: bool = False


class Tensor(Struct, frozen=True, kw_only=True):
    """One tensor info: name, shape, type and extent, never its values."""

    name: str
    #: ``ne`` of ggml: the first dimension is contiguous.
    shape: tuple[int, ...]
    type: TensorType
    #: Offset of the info in its file, for messages.
    info_offset: int
    #: Offset of the data from the start of the file's data section.
    offset: int
    #: ``None`` where the type is unknown or the row isn't a whole number of blocks.
    size_bytes: int | None
    #: Index into ``Gguf.files``.
    file: int = 0

    @property
    def elements(self) -> int:
        """Number of elements."""
        product = 1
        for dimension in self.shape:
            product *= dimension
        return product


class Tail(Struct, frozen=True, kw_only=True):
    """What a file holds behind its last tensor, its padding not included."""

    #: From the start of the file.
    offset: int
    size_bytes: int
    #: What its first bytes begin, ``a zip archive``; ``None`` for nothing known.
    kind: str | None
    #: Nothing but zeros, as far as was looked: both ends of a long one.
    empty: bool


def _unread(file: FileFacts, tensor: Tensor) -> Absent:
    del file
    return Absent(f"the data of {tensor.name} can't be read")


class FileFacts(Loading, frozen=True, kw_only=True):
    """One physical file: a whole model or one shard."""

    name: str
    size_bytes: int
    #: Bytes up to the end of the last tensor info, padding not included.
    header_bytes: int
    #: sha256 of those bytes, in hex.
    header_sha256: str
    #: Where tensor data begins: ``header_bytes`` padded to ``alignment``.
    data_offset: int
    alignment: int
    version: int
    byte_order: Literal["little", "big"]
    #: Every key and tensor info in file order, duplicates included.
    fields: tuple[Field, ...]
    tensors: tuple[Tensor, ...]
    tail: Tail | None = None
    #: Reads the values of one of its small tensors: ``Gguf.values``.
    load_values: Callable[[FileFacts, Tensor], tuple[float, ...] | Absent] = _unread


class Card(Struct, frozen=True, kw_only=True):
    """What the model card beside a file says, as far as rules look at it."""

    license: str | None = None
    license_name: str | None = None
    base_models: tuple[str, ...] = ()
    #: Names of GGUF files anywhere in its text.
    files: frozenset[str] = frozenset()
    #: Quantizations anywhere in its text, in capitals.
    labels: frozenset[str] = frozenset()
    #: It describes a checkpoint, whose ``config.json`` is beside it as well.
    of_checkpoint: bool = False


class Gguf(Struct, frozen=True, kw_only=True):
    """One model: a GGUF file, or a split set read as one."""

    #: What the user named.
    name: str
    #: In shard order.
    files: tuple[FileFacts, ...]
    #: Key -> first occurrence, over all shards.
    fields: Mapping[str, Field]
    #: Name -> first occurrence, over all shards.
    tensors: Mapping[str, Tensor]

    @property
    def architecture(self) -> str | None:
        """``general.architecture``, or ``None`` where it is absent or no string."""
        return self.string("general.architecture")

    def values(self, name: str) -> tuple[float, ...] | Absent:
        """Return the values of a small tensor, each call reading them.

        Absent where there is no such tensor, no data or another type than F32. Raises
        AuditError where the file can't be read any more.
        """
        tensor = self.tensors.get(name)
        if tensor is None:
            return Absent(f"there is no {name}")
        file = self.files[tensor.file]
        return file.load_values(file, tensor)

    def string(self, key: str) -> str | None:
        """Return a string value by its full key, ``None`` where there is none."""
        found = self.fields.get(key)
        return found.value if found is not None and isinstance(found.value, str) else None

    def integer(self, key: str) -> int | None:
        """Return an integer value by its full key, ``None`` where there is none."""
        found = self.fields.get(key)
        if found is None or isinstance(found.value, bool) or not isinstance(found.value, int):
            return None
        return found.value

    def array(self, key: str) -> Array | None:
        """Return an array by its full key, ``None`` where there is none."""
        found = self.fields.get(key)
        return found.value if found is not None and isinstance(found.value, Array) else None


#: Hyper-parameters without an architecture in front of them (``LLM_KV_NAMES`` in
#: src/llama-arch.cpp): those of Apertus' activation.
_BARE = ("xielu.",)
#: The largest unsigned 32-bit integer.
_U32 = (1 << 32) - 1
#: Types of an array with an integer per block (``get_arr`` in llama-model-loader.cpp).
_BLOCK_TYPES = (ValueType.BOOL, ValueType.UINT32, ValueType.INT32)


class Fields:
    """Hyper-parameters of one architecture, read as llama.cpp reads them.

    Keys are given without their architecture prefix and matched exactly. A getter
    returns ``None`` for an absent key and raises ``Refused`` where llama.cpp would
    refuse the value's type or an array's length (src/llama-model-loader.cpp,
    ``get_key`` and ``get_key_or_arr``).
    """

    __slots__ = ("_alternatives", "_fields", "architecture")

    def __init__(
        self,
        architecture: str,
        fields: Mapping[str, Field],
        *,
        alternatives: Mapping[str, tuple[Scalar | tuple[Scalar, ...] | None, ...]] | None = None,
    ) -> None:
        self.architecture = architecture
        self._fields = fields
        self._alternatives = alternatives or {}

    @classmethod
    def of(cls, architecture: str, values: Mapping[str, Scalar | Sequence[Scalar]]) -> Fields:
        """Make fields out of plain values by full key, as a converter writes them."""
        fields = {
            key: Field(
                key=key,
                type=None,
                value=value if isinstance(value, Scalar) else tuple(value),
            )
            for key, value in values.items()
        }
        return cls(architecture, fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields.values())

    def __contains__(self, key: str) -> bool:
        return self.key(key) in self._fields

    def key(self, name: str) -> str:
        """Return the full key of a name without its architecture prefix."""
        return name if name.startswith(_BARE) else f"{self.architecture}.{name}"

    def find(self, name: str) -> Field | None:
        """Return the field of a name without its architecture prefix."""
        return self._fields.get(self.key(name))

    def alternatives(self, name: str) -> tuple[Scalar | tuple[Scalar, ...] | None, ...]:
        """Return other values that are as right, ``None`` among them for an absent key.

        Only expected fields have any: what a converter writes may depend on the
        release of the libraries it runs with.
        """
        return self._alternatives.get(self.key(name), ())

    def integer(self, name: str) -> int | None:
        """Return an unsigned 32-bit scalar."""
        found = self.find(name)
        if found is None:
            return None
        if isinstance(found.value, bool) or not isinstance(found.value, int):
            raise self._wrong_type(found, "u32")
        if found.type not in (None, ValueType.UINT32) or not 0 <= found.value <= _U32:
            raise self._wrong_type(found, "u32")
        return found.value

    def number(self, name: str) -> float | None:
        """Return a 32-bit float scalar."""
        found = self.find(name)
        if found is None:
            return None
        if isinstance(found.value, bool) or not isinstance(found.value, int | float):
            raise self._wrong_type(found, "f32")
        if found.type not in (None, ValueType.FLOAT32):
            raise self._wrong_type(found, "f32")
        return float(found.value)

    def boolean(self, name: str) -> bool | None:
        """Return a boolean scalar."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found.value, bool):
            raise self._wrong_type(found, "bool")
        return found.value

    def string(self, name: str) -> str | None:
        """Return a string."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found.value, str):
            raise self._wrong_type(found, "str")
        return found.value

    def items(self, name: str) -> tuple[Scalar, ...] | None:
        """Return an array's items, whatever their number; ``None`` for a scalar too."""
        found = self.find(name)
        if found is None:
            return None
        if isinstance(found.value, Array):
            return tuple(found.value.items())
        return found.value if isinstance(found.value, tuple) else None

    def per_block(self, name: str, blocks: int) -> tuple[int, ...] | None:
        """Return one integer per block: a scalar for all, or an array of ``blocks``."""
        found = self.find(name)
        if found is None:
            return None
        if blocks > LIMITS.blocks:
            message = f"{blocks} blocks, at most {LIMITS.blocks} are looked at"
            raise LimitError(message, where=Where(key=self.key("block_count")))
        if isinstance(found.value, Scalar):
            scalar = self.integer(name)
            return None if scalar is None else (scalar,) * blocks
        if len(found.value) != blocks:
            raise Refused(
                f"{found.key} has {len(found.value)} items, llama.cpp wants one per block, {blocks}",
                where=Where(key=found.key, offset=found.offset),
            )
        if isinstance(found.value, Array) and found.value.item_type not in _BLOCK_TYPES:
            raise self._wrong_type(found, "array of u32, i32 or bool")
        items = self.items(name) or ()
        if not all(isinstance(item, int) for item in items):
            raise self._wrong_type(found, "array of integers")
        # a negative number is read as the large one with the same bits
        return tuple(int(item) & _U32 for item in items)

    def _wrong_type(self, found: Field, wanted: str) -> Refused:
        has = found.type.name.lower() if found.type is not None else type(found.value).__name__
        return Refused(
            f"{found.key} is {has}, llama.cpp wants {wanted}",
            where=Where(key=found.key, offset=found.offset),
        )


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
    def non_finite(self) -> tuple[str, ...]:
        """Places in the config that hold no finite number, ``time_step_limit[1]``."""
        return () if isinstance(self.config, Absent) else tuple(_non_finite("", dict(self.config)))

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


def _non_finite(place: str, value: Json) -> Iterator[str]:
    # Recursion is bounded: whoever parsed the value bounded its depth.
    match value:
        case float() if not math.isfinite(value):
            yield place
        case dict():
            for key, member in value.items():
                yield from _non_finite(f"{place}.{key}" if place else key, member)
        case list():
            for index, item in enumerate(value):
                yield from _non_finite(f"{place}[{index}]", item)
        case _:
            return

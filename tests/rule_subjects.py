"""What rules are shown in tests: models and conversions made of literals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gguf_audit import arch
from gguf_audit.checkpoint import Checkpoint, Json, Tokenizer, Vocabulary
from gguf_audit.errors import AuditError, Refused
from gguf_audit.evidence import Conversion, Model, Settings
from gguf_audit.fields import Fields
from gguf_audit.gguf import Gguf, Scalar, ValueType
from gguf_audit.layout import CacheLayout, Layer, Store
from gguf_audit.parts import Absent
from gguf_audit.policies import Policy
from gguf_audit.testing import FieldValue, TensorSpec, make_gguf

SETTINGS = Settings()
UNKNOWN = Absent("not given")

#: What a right conversion of Gemma 3 270M says, as far as rules look at it.
GEMMA: Mapping[str, Scalar] = {
    "gemma3.block_count": 18,
    "gemma3.context_length": 32768,
    "gemma3.embedding_length": 640,
    "gemma3.feed_forward_length": 2048,
    "gemma3.attention.head_count": 4,
    "gemma3.attention.head_count_kv": 1,
    "gemma3.attention.key_length": 256,
    "gemma3.attention.value_length": 256,
    "gemma3.attention.layer_norm_rms_epsilon": 1e-6,
    "gemma3.attention.sliding_window": 512,
    "gemma3.rope.freq_base": 1e6,
    "gemma3.rope.freq_base_swa": 1e4,
}
#: A small Llama with heads of a length of their own.
LLAMA: Mapping[str, Scalar] = {
    "llama.block_count": 3,
    "llama.context_length": 8192,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.key_length": 16,
    "llama.attention.value_length": 16,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 5e5,
}

Tensors = Iterable[tuple[str, Sequence[int], str] | TensorSpec]


def without(values: Mapping[str, Scalar], *keys: str) -> dict[str, Scalar]:
    """Return values that have lost some keys."""
    return {key: value for key, value in values.items() if key not in keys}


def gguf(values: Mapping[str, FieldValue], tensors: Tensors = ()) -> Gguf:
    """Return a file of an architecture that its keys begin with, unless they name one."""
    first = next((key.partition(".")[0] for key in values), "llama")
    named = {} if first in ("general", "tokenizer") else {"general.architecture": first}
    return make_gguf({**named, **values}, tensors)


def model(
    values: Mapping[str, FieldValue],
    tensors: Tensors = (),
    *,
    implied: CacheLayout | Refused | Absent | None = None,
) -> Model:
    """Return a model, its layout as llama.cpp reads it unless one is given."""
    return model_of(gguf(values, tensors), implied=implied)


def model_of(file: Gguf, *, implied: CacheLayout | Refused | Absent | None = None) -> Model:
    """Return the evidence that a file is by itself."""
    name = file.architecture or ""
    fields = Fields(name, file.fields)
    known = arch.by_name(name) or Absent("no such architecture")
    if implied is None:
        try:
            implied = arch.implied_layout(fields)
        except Refused as error:
            implied = error
        except AuditError as error:
            implied = Absent(error.message)
    return Model(gguf=file, fields=fields, architecture=known, implied=implied)


def checkpoint(
    *,
    tokenizer: Tokenizer | Absent = UNKNOWN,
    templates: Mapping[str, str] | Absent = UNKNOWN,
    vocabulary: Vocabulary | Absent = UNKNOWN,
    config: Mapping[str, Json] | Absent = UNKNOWN,
    generation: Mapping[str, Json] | Absent = UNKNOWN,
) -> Checkpoint:
    """Return a reference that holds these parts and no other."""
    return Checkpoint(
        id="org/model",
        origin="folder",
        config=config,
        generation_config=generation,
        tokenizer_config=UNKNOWN,
        chat_templates=templates,
        load_tensors=lambda: UNKNOWN,
        load_tokenizer=lambda: tokenizer,
        load_vocabulary=lambda: vocabulary,
    )


def conversion(
    actual: Model | Mapping[str, FieldValue],
    expected: Fields | Mapping[str, Scalar | Sequence[Scalar]] | Absent = UNKNOWN,
    *,
    layout: CacheLayout | None = None,
    reference: Checkpoint | None = None,
) -> Conversion:
    """Return a model beside what a right conversion would be.

    The expected layout is what llama.cpp makes of the expected fields unless one is
    given.
    """
    found = actual if isinstance(actual, Model) else model(actual)
    fields: Fields | Absent
    if isinstance(expected, Mapping):
        fields = Fields.of(next(iter(expected)).partition(".")[0], expected)
    else:
        fields = expected
    wanted: CacheLayout | Absent = UNKNOWN
    if layout is not None:
        wanted = layout
    elif isinstance(fields, Fields):
        wanted = arch.implied_layout(fields)
    return Conversion(
        model=found,
        checkpoint=reference or checkpoint(),
        expected_architecture=fields if isinstance(fields, Absent) else fields.architecture,
        expected_fields=fields,
        expected=wanted,
        ideal=UNKNOWN,
    )


def layers(*stores: Store | Sequence[Store] | None) -> CacheLayout:
    """Return a layout of one layer for each store, sequence of stores, or ``None``."""
    found: list[Layer] = []
    for index, kept in enumerate(stores):
        stored = kept if isinstance(kept, Sequence) else () if kept is None else (kept,)
        found.append(Layer(index=index, stores=tuple(stored)))
    return CacheLayout(layers=tuple(found))


def compared(implied: CacheLayout, expected: CacheLayout) -> Conversion:
    """Return a conversion of which only the two layouts are known."""
    return conversion(model({"odd.block_count": 3}, implied=implied), layout=expected)


def offset(subject: Model | Conversion, key: str) -> int:
    """Return where a key stands in the file."""
    file = subject.gguf if isinstance(subject, Model) else subject.model.gguf
    found = file.fields[key].offset
    assert found is not None
    return found


def info_offset(subject: Model, tensor: str) -> int:
    """Return where a tensor's info stands in the file."""
    return subject.gguf.tensors[tensor].info_offset


def tokens(count: int, kind: str = "gpt2") -> dict[str, FieldValue]:
    """Return a vocabulary of so many tokens."""
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": kind,
        "tokenizer.ggml.tokens": (ValueType.STRING, [f"t{index}" for index in range(count)]),
    }


def vocabulary(
    texts: Sequence[str],
    others: Mapping[str, FieldValue] | None = None,
    *,
    kind: str = "gpt2",
    types: Sequence[int] | None = None,
) -> dict[str, FieldValue]:
    """Return a vocabulary of these tokens; others by their key, ``merges``."""
    found: dict[str, FieldValue] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": kind,
        "tokenizer.ggml.tokens": (ValueType.STRING, list(texts)),
    }
    if types is not None:
        found["tokenizer.ggml.token_type"] = (ValueType.INT32, list(types))
    return {**found, **{f"tokenizer.ggml.{name}": value for name, value in (others or {}).items()}}


__all__ = [
    "GEMMA",
    "LLAMA",
    "SETTINGS",
    "UNKNOWN",
    "checkpoint",
    "compared",
    "conversion",
    "gguf",
    "info_offset",
    "layers",
    "model",
    "model_of",
    "offset",
    "tokens",
    "vocabulary",
    "without",
]


def policed(policy: Policy) -> Settings:
    """Return settings in which somebody demands something."""
    return Settings(policy=policy)

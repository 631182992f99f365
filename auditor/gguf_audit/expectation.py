"""What a reference tells of a right conversion, and what it can't tell."""

from __future__ import annotations

import enum
from typing import assert_never

from gguf_audit import arch
from gguf_audit.checkpoint import Checkpoint
from gguf_audit.errors import AuditError, MalformedError
from gguf_audit.fields import Fields
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.text_model import text_part
from gguf_audit.where import Where

__all__ = ["REQUIRABLE", "Part", "disagreement", "expected_fields", "lacks", "why_missing"]

#: Rows by which a vocabulary is padded, or tokens that a conversion adds, at most.
_PADDING = 1024


def expected_fields(checkpoint: Checkpoint) -> Fields:
    """Return the metadata of a right conversion of a reference.

    Of another GGUF its own. Raises MalformedError for a config that is none, and
    UnsupportedError for a class that the converter, or we, don't know.
    """
    if checkpoint.gguf is not None:
        name = checkpoint.gguf.architecture
        if name is None:
            where = Where(file=checkpoint.id, key="general.architecture")
            raise MalformedError("general.architecture is absent", where=where)
        return Fields(name, checkpoint.gguf.fields)
    if isinstance(checkpoint.config, Absent):
        raise MalformedError(f"{checkpoint.id}: {checkpoint.config.reason}")
    return arch.expected_fields(checkpoint.config, checkpoint.load_pooling)


def disagreement(checkpoint: Checkpoint, gguf: Gguf) -> str:
    """Say in what a file can't be a conversion of a reference that was guessed, "" if in nothing.

    Whoever named the reference would hear the same from rules, as a finding.
    """
    try:
        wanted = expected_fields(checkpoint)
        has = Fields(gguf.architecture or "", gguf.fields)
        if wanted.architecture != has.architecture:
            return f"its architecture is {wanted.architecture!r}, the file's {has.architecture!r}"
        sizes = (
            ("width", 0, wanted.integer("embedding_length"), has.integer("embedding_length")),
            ("number of blocks", 0, _trunk(wanted), _trunk(has)),
            ("vocabulary", _PADDING, _vocabulary_size(checkpoint), _rows(gguf)),
        )
    except AuditError as error:
        return f"whether the file agrees with that isn't known: {error.message}"
    for what, margin, expected, actual in sizes:
        if expected is not None and actual is not None and abs(expected - actual) > margin:
            return f"its {what} is {expected:,}, the file's {actual:,}"
    return ""


def _trunk(fields: Fields) -> int | None:
    blocks = fields.integer("block_count")
    return None if blocks is None else blocks - (fields.integer("nextn_predict_layers") or 0)


def _vocabulary_size(checkpoint: Checkpoint) -> int | None:
    config = checkpoint.config
    if isinstance(config, Absent):
        return None
    part = text_part(config) or {}
    size = part.get("vocab_size", config.get("vocab_size"))
    return size if type(size) is int else None


def _rows(gguf: Gguf) -> int | None:
    """Return how many tokens a file has embeddings for, or a list of."""
    embeddings = gguf.tensors.get("token_embd.weight")
    if embeddings is not None and len(embeddings.shape) > 1:
        return embeddings.shape[1]
    tokens = gguf.array("tokenizer.ggml.tokens")
    return None if tokens is None else tokens.count


class Part(enum.StrEnum):
    """A part of a reference that a user may insist on."""

    REFERENCE = "reference"
    HUB = "hub"
    TOKENIZER = "tokenizer"
    TEMPLATE = "template"


#: Their names.
REQUIRABLE = tuple(part.value for part in Part)


def why_missing(checkpoint: Checkpoint, part: Part) -> str | None:
    """Say why a part of a reference isn't there, ``None`` where it is all there.

    The tokenizer is read where it is asked for (AuditError).
    """
    match part:
        case Part.REFERENCE:
            return None
        case Part.HUB if checkpoint.origin == "hub":
            return None
        case Part.HUB:
            return f"the reference is not from the Hub, {checkpoint.found or 'which was not asked'}"
        case Part.TEMPLATE:
            templates = checkpoint.chat_templates
            return templates.reason if isinstance(templates, Absent) else None
        case Part.TOKENIZER:
            vocabulary = checkpoint.vocabulary
            reason = vocabulary.reason if isinstance(vocabulary, Absent) else None
            return _ids_missing(checkpoint) or reason
        case _ as never:
            assert_never(never)


def _ids_missing(checkpoint: Checkpoint) -> str | None:
    """Say why the reference doesn't tell what its special tokens are, ``None`` if it does."""
    tokenizer = checkpoint.tokenizer
    if isinstance(tokenizer, Absent):
        return tokenizer.reason
    if tokenizer.unsure_ids or not tokenizer.complete:
        return f"{checkpoint.id} doesn't say which ids all of the special tokens have"
    return None


def lacks(checkpoint: Checkpoint) -> str:
    """Name what a reference can't tell without anything being fetched or read, or ""."""
    gone: list[str] = []
    if isinstance(checkpoint.config, Absent) and checkpoint.gguf is None:
        gone.append("hyper-parameters")
    if why_missing(checkpoint, Part.TEMPLATE) is not None:
        gone.append("chat templates")
    if checkpoint.origin in ("card", "config"):
        if _ids_missing(checkpoint) is not None:
            gone.append("special token ids")
        if isinstance(checkpoint.vocabulary, Absent):
            gone.append("vocabulary")
        if isinstance(checkpoint.tensors, Absent):
            gone.append("tensors")
    return f"it says nothing of {', '.join(gone)}" if gone else ""

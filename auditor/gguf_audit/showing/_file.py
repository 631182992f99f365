"""A GGUF file or set as ``show`` tells it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from gguf_audit.chat import TEMPLATE
from gguf_audit.errors import AuditError, Refused
from gguf_audit.formats.file_types import FILE_TYPES
from gguf_audit.gathering import Evidence, gather
from gguf_audit.gguf import Array, Gguf, Scalar
from gguf_audit.layout import CacheLayout
from gguf_audit.overview import Entry, KeptCache, Overview
from gguf_audit.runtime.vocabulary import (
    ADD_BOS,
    MODEL,
    SPECIAL_KEYS,
    adds_bos,
    special_id,
    tokens,
)
from gguf_audit.showing._cache import cache_of
from gguf_audit.showing._parameters import entry_of, group_name, grouped, parameters
from gguf_audit.targets import Located
from gguf_audit.verdict import FileSummary, Problem

__all__ = ["show_file"]


def show_file(located: Located) -> Overview:
    """Return what is known of the model in a file, or in its set; raises AuditError."""
    gguf = located.open()
    evidence = gather(gguf, located.local_path(), None)
    cache, unknown = _cache(evidence)
    entries = [*_parameters(evidence), *_tokenizer(gguf), *_templates(evidence), *_file(gguf)]
    return Overview(
        target=located.name,
        kind=evidence.kind,
        files=tuple(
            FileSummary(
                name=file.name, size_bytes=file.size_bytes, header_sha256=file.header_sha256
            )
            for file in gguf.files
        ),
        architecture=gguf.architecture,
        groups=grouped(entries),
        cache=cache,
        unknown=unknown,
        errors=tuple(Problem.of(error) for error in evidence.errors),
    )


def _cache(evidence: Evidence) -> tuple[KeptCache | None, tuple[str, ...]]:
    """Return the cache, and what isn't known about it."""
    implied = evidence.model.implied
    if evidence.kind not in ("model", "vocabulary"):
        return None, (f"a cache: files of this kind ({evidence.kind}) have none of their own",)
    if isinstance(implied, Refused):
        return None, (f"the cache: llama.cpp refuses the file, {implied.message}",)
    if not isinstance(implied, CacheLayout):
        return None, (f"the cache: {implied.reason}",)
    try:
        cache = cache_of(evidence.model.fields, None)
    except AuditError as error:
        return None, (f"the cache: {error.message}",)
    if not implied.layers:
        return cache, ()
    reason = "what the architecture itself needs: a file alone doesn't say, its reference does"
    return cache, (reason,)


def _parameters(evidence: Evidence) -> Iterator[tuple[str, Entry]]:
    """Yield what no other function here does: general keys, hyper-parameters, strangers."""
    gguf, model = evidence.model.gguf, evidence.model
    name = gguf.architecture or ""
    for field in gguf.fields.values():
        group = group_name(field.key, name)
        if group in ("tokenizer", "template") or (name and field.key.startswith(f"{name}.")):
            continue
        note = FILE_TYPES.get(_integer(field.value), "") if field.key == "general.file_type" else ""
        yield group, entry_of(field, note=note)
    layout = model.implied if isinstance(model.implied, CacheLayout) else None
    yield from parameters(model.fields, layout, with_defaults=evidence.kind == "model")
    yield from _shapes(gguf)


def _integer(value: object) -> int:
    return value if isinstance(value, int) else -1


def _shapes(gguf: Gguf) -> Iterator[tuple[str, Entry]]:
    embedding = gguf.tensors.get("token_embd.weight")
    if embedding is None:
        return
    yield "model", Entry(name="token_embd.weight", value=embedding.shape, origin="shape")
    output = gguf.tensors.get("output.weight")
    if output is None:
        note = "llama.cpp uses token_embd.weight where the architecture allows it"
        yield "model", Entry(name="output.weight", value=None, origin="shape", note=note)
    else:
        yield "model", Entry(name="output.weight", value=output.shape, origin="shape")


def _tokenizer(gguf: Gguf) -> Iterator[tuple[str, Entry]]:
    """Yield the tokenizer's keys, each special id with its token's text."""
    listed = tokens(gguf)
    texts = _texts(listed)
    keys = {key: name for name, key in SPECIAL_KEYS.items()}
    for key, field in gguf.fields.items():
        if group_name(key, gguf.architecture or "") != "tokenizer":
            continue
        is_id = key in keys or (key.startswith("tokenizer.ggml.") and key.endswith("_token_id"))
        note = _text(texts, field.value) if is_id else ""
        yield "tokenizer", entry_of(field, note=note)
    if gguf.string(MODEL) is None:
        return
    for key, name in keys.items():
        value = special_id(gguf, name)
        if key in gguf.fields or value is None or value.value >= (listed.count if listed else 0):
            continue
        note = _text(texts, value.value)
        yield "tokenizer", Entry(name=key, value=value.value, origin="runtime default", note=note)
    if ADD_BOS not in gguf.fields:
        added = adds_bos(gguf).value
        yield "tokenizer", Entry(name=ADD_BOS, value=added, origin="runtime default")


def _texts(listed: Array | None) -> Sequence[Scalar]:
    try:
        return () if listed is None else listed.items()
    except AuditError:
        return ()


def _text(texts: Sequence[Scalar], value: object) -> str:
    if isinstance(value, int) and 0 <= value < len(texts):
        return str(texts[value])
    return "no such token" if texts else ""


def _templates(evidence: Evidence) -> Iterator[tuple[str, Entry]]:
    """Yield each template by its length and hash; the text itself would fill the screen."""
    gguf = evidence.model.gguf
    for key, field in gguf.fields.items():
        if group_name(key, gguf.architecture or "") != "template":
            continue
        if isinstance(field.value, str):
            yield "template", Entry(name=key, value=sized(field.value), origin="key")
        else:
            yield "template", entry_of(field)
    if evidence.kind == "model" and tokens(gguf) is not None and TEMPLATE not in gguf.fields:
        # common/chat.cpp, common_chat_templates_init
        note = "none is stored; llama-server formats chats as ChatML then"
        entry = Entry(name=TEMPLATE, value="chatml", origin="runtime default", note=note)
        yield "template", entry


def sized(template: str) -> str:
    """Return a template's length and the beginning of its hash."""
    stored = template.encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(stored).hexdigest()
    return f"{len(template):,} characters, sha256 {digest[:16]}"


def _file(gguf: Gguf) -> Iterator[tuple[str, Entry]]:
    first = gguf.files[0]
    form = f"GGUF {first.version}, {first.byte_order} endian, aligned to {first.alignment}"
    yield "file", Entry(name="format", value=form, origin="header")
    yield "file", Entry(name="files", value=len(gguf.files), origin="header")
    size = sum(file.size_bytes for file in gguf.files)
    yield "file", Entry(name="bytes", value=size, origin="header")
    counts: dict[str, int] = {}
    for tensor in gguf.tensors.values():
        counts[tensor.type.name] = counts.get(tensor.type.name, 0) + 1
    yield "file", Entry(name="tensors", value=len(gguf.tensors), origin="header")
    if counts:
        common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        held = ", ".join(f"{name} x {count:,}" for name, count in common)
        yield "file", Entry(name="tensor types", value=held, origin="header")
        elements = sum(tensor.elements for tensor in gguf.tensors.values())
        yield "file", Entry(name="parameters", value=elements, origin="shape")

"""What is fuzzed, and what has to hold for any bytes: a value or an AuditError.

Time and memory are bounded from outside, by whoever runs a target.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import fuzz_brought
import fuzz_documents
import fuzz_lines
import fuzz_structure
import fuzz_templates
from gguf_audit import arch
from gguf_audit.errors import AuditError, Refused
from gguf_audit.evidence import Model, Settings
from gguf_audit.expectation import expected_fields
from gguf_audit.extents import extents
from gguf_audit.formats.card import find_card, list_cards
from gguf_audit.formats.checkpoint import read_checkpoint
from gguf_audit.formats.gguf import read_gguf
from gguf_audit.gathering import gather
from gguf_audit.gguf import Array
from gguf_audit.parts import Absent
from gguf_audit.probes._libllama import Log
from gguf_audit.probes.child import Talk, answers_of
from gguf_audit.probes.llama_cpp import Library, understood
from gguf_audit.probes.template_child.rendering import environment
from gguf_audit.probes.template_child.suspicion import examine
from gguf_audit.probes.template_child.tree import Tree
from gguf_audit.rule import OnModel, Rule
from gguf_audit.sources import MemorySource, MemoryTree
from gguf_audit_rules import load
from recipes import find_recipes

__all__ = [
    "TARGETS",
    "audit",
    "brought",
    "checkpoint",
    "header",
    "log",
    "mutated",
    "seeds",
    "template",
]

SETTINGS = Settings(lengths=(4096,))
LIBRARY = Library(path=Path("libllama.so"), origin="fuzzed")
#: Files of a checkpoint, told apart by the first byte of an input.
FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "tokenizer.model",
    "chat_template.json",
    "README.md",
)
CONFIG = b'{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32,\
 "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 16,\
 "rms_norm_eps": 1e-5, "max_position_embeddings": 128}'
VOCABULARY = b'{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},\
 "added_tokens": [{"id": 3, "content": "<s>", "special": true}], "post_processor": {"type":\
 "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}}'
_TENSORS = b'{"a": {"dtype": "F16", "shape": [2, 2], "data_offsets": [0, 8]}, "b": {"dtype":\
 "F8_E4M3", "shape": [4], "data_offsets": [8, 12]}}'
STORED = len(_TENSORS).to_bytes(8, "little") + _TENSORS + bytes(12)
WHOLE: Mapping[str, bytes] = {
    "config.json": CONFIG,
    "tokenizer.json": VOCABULARY,
    "tokenizer_config.json": b'{"bos_token": "<s>", "chat_template": "{{ messages }}"}',
}
_RULES: list[Rule] = [rule for rule in load() if isinstance(rule.check, OnModel)]


def header(data: bytes) -> None:
    """Read a GGUF file and everything in its header."""
    try:
        gguf = read_gguf(MemorySource("fuzzed", data))
        for field in gguf.fields.values():
            if isinstance(field.value, Array):
                field.value.items()
        for file in gguf.files:
            extents(file)
    except AuditError:
        return


def audit(data: bytes) -> None:
    """Read a GGUF file and let every rule on a file by itself look at it."""
    try:
        evidence = gather(read_gguf(MemorySource("fuzzed", data)), "fuzzed", None)
    except AuditError:
        return
    for rule in _RULES:
        _run(rule, evidence.model)


def _run(rule: Rule, model: Model) -> None:
    try:
        if isinstance(rule.check, OnModel):
            list(rule.check.check(model, SETTINGS))
    except Refused:
        raise  # The engine takes it for a crash.
    except AuditError:
        return


def checkpoint(data: bytes) -> None:
    """Read a checkpoint of which one file is not what it should be."""
    name = FILES[data[0] % len(FILES)] if data else FILES[0]
    tree = MemoryTree({**WHOLE, name: data[1:]}, identity="fuzzed")
    for look in (_fields, _tensors, _tokenizer):
        try:
            look(tree)
        except AuditError:
            continue


def _fields(tree: MemoryTree) -> None:
    found = read_checkpoint(tree, id="fuzzed")
    arch.implied_layout(expected_fields(found))
    if not isinstance(found.config, Absent):
        arch.ideal_layout(found.config)


def _tensors(tree: MemoryTree) -> None:
    _ = read_checkpoint(tree, id="fuzzed").tensors


def _tokenizer(tree: MemoryTree) -> None:
    _ = read_checkpoint(tree, id="fuzzed").tokenizer


def template(data: bytes) -> None:
    """Parse a template and look at it, as the child does, whose limits bound it there."""
    source = data.decode("utf-8", "surrogateescape")
    try:
        tree = environment().parse(source)
    except Exception:
        # jinja2 raises what it likes, and the child says what it was.
        tree = None
    found = examine(None if tree is None else Tree(tree), source)
    json.dumps(found)
    assert found["suspicions"] is not None


def log(data: bytes) -> None:
    """Take what llama.cpp says of a file, and its process: a crash speaks as well."""
    said, answers, complaints, *_ = *data.split(b"\0", 2), b"", b""
    heard = Log()
    for line in said.split(b"\n"):
        heard.take(line[0] if line else 0, line[1:])
    sizes = heard.mebibytes()
    assert len(sizes) == len(heard.caches())
    assert all(0 <= size < math.inf for size in sizes)
    assert heard.errors()
    for code in (0, 1, -6, -11, None):
        talk = Talk(
            answers=tuple(answers_of(answers)),
            complaints=complaints.decode("utf-8", "replace"),
            code=code,
        )
        runtime, outcomes, _loaded = understood(talk, LIBRARY, 2)
        assert runtime
        assert outcomes


def brought(data: bytes) -> None:
    """Read what sources and users bring beside models."""
    fuzz_brought.look_at(data)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "log": log,
    "header": header,
    "audit": audit,
    "checkpoint": checkpoint,
    "template": template,
    "brought": brought,
}


def mutated(target: str, data: bytes, other: bytes, seed: int) -> bytes | None:
    """Return an input changed by its structure, ``None`` where it has none."""
    match target:
        case "checkpoint":
            return fuzz_documents.mutated(data, seed)
        case "brought":
            return fuzz_brought.mutated(data, other, seed)
        case "log":
            return fuzz_lines.mutated(data, other, seed)
        case "template":
            return fuzz_templates.mutated(data, other, seed)
        case _:
            return fuzz_structure.mutated(data, other, seed)


def seeds(target: str) -> Iterator[bytes]:
    """Yield inputs to begin with: our own fixtures, with short vocabularies."""
    if target == "checkpoint":
        for number, name in enumerate(FILES):
            yield bytes([number]) + WHOLE.get(name, b"{}")
        for card in list_cards():
            config = find_card(card)
            if config is not None and not isinstance(config.config, Absent):
                yield b"\0" + json.dumps(dict(config.config)).encode()
        yield bytes([FILES.index("model.safetensors")]) + STORED
        return
    if target == "brought":
        yield from fuzz_brought.SEEDS
        return
    if target == "log":
        yield from fuzz_lines.SEEDS
        return
    if target == "template":
        yield from (text.encode() for text in fuzz_templates.SEEDS)
        return
    for recipe in find_recipes():
        yield fuzz_structure.shortened(recipe)

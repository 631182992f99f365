"""A small model with a large byte-level vocabulary, all of it words of up to three syllables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gguf_audit.gguf import ValueType
from gguf_audit.testing import FieldValue, TensorSpec, write_gguf

__all__ = ["WIDTH", "vocabulary", "write_file"]

WIDTH = 16
_NORMAL, _CONTROL = 1, 3
#: The bytes as GPT-2 spells them.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = [chr(byte) for byte in _PRINTABLE] + [chr(0x100 + i) for i in range(256 - len(_PRINTABLE))]
_SPACE, _CONSONANTS, _VOWELS = "\u0120", "bdgklmnp", "aeiu"
_KEYS: Mapping[str, FieldValue] = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.context_length": 64,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": 64,
    "llama.attention.head_count": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": WIDTH // 2,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
}


def vocabulary(tokens: int, merges: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return so many tokens, named ones left out, and merges.

    Token 256 + i is what merge i makes, as in GPT-2; further merges make a token again.
    """
    made = [(_SPACE, consonant) for consonant in _CONSONANTS]
    starts = [*_CONSONANTS, *(_SPACE + consonant for consonant in _CONSONANTS)]
    syllables = [*itertools.product(starts, _VOWELS)]
    made += syllables
    parts = ["".join(each) for each in syllables]
    made += itertools.product(parts, parts)
    texts = [*_BYTES, *("".join(each) for each in made)]
    words = [*itertools.islice(itertools.product(parts, repeat=3), tokens - len(texts))]
    made += ((first + second, third) for first, second, third in words)
    again = merges - len(made)
    made += ((first, second + third) for first, second, third in words[:again])
    return [*texts, *("".join(each) for each in words)], made


def write_file(
    file: Path,
    tokens: Sequence[str],
    merges: Sequence[tuple[str, str]],
    *,
    named: Sequence[str],
    template: str | None = None,
) -> None:
    """Write a model; the first named tokens are its beginning, its end and its padding."""
    count = len(tokens) + len(named)
    types = [_NORMAL] * len(tokens) + [_CONTROL] * len(named)
    keys: dict[str, FieldValue] = {
        **_KEYS,
        "llama.vocab_size": count,
        "tokenizer.ggml.tokens": (ValueType.STRING, [*tokens, *named]),
        "tokenizer.ggml.token_type": (ValueType.INT32, types),
        "tokenizer.ggml.merges": (ValueType.STRING, [" ".join(merge) for merge in merges]),
    }
    for number, use in enumerate(("bos", "eos", "padding")):
        keys[f"tokenizer.ggml.{use}_token_id"] = len(tokens) + number
    if template is not None:
        keys["tokenizer.chat_template"] = template
    write_gguf(file, keys, [*_tensors(count)])


def _tensors(tokens: int) -> Iterator[TensorSpec]:
    yield TensorSpec("token_embd.weight", (WIDTH, tokens), "F16")
    yield TensorSpec("output_norm.weight", (WIDTH,), "F32")
    yield TensorSpec("output.weight", (WIDTH, tokens), "F16")
    for name in ("attn_norm", "ffn_norm"):
        yield TensorSpec(f"blk.0.{name}.weight", (WIDTH,), "F32")
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        yield TensorSpec(f"blk.0.{name}.weight", (WIDTH, WIDTH), "F16")
    for name, shape in (("gate", (WIDTH, 64)), ("up", (WIDTH, 64)), ("down", (64, WIDTH))):
        yield TensorSpec(f"blk.0.ffn_{name}.weight", shape, "F16")

"""Pre-tokenizers as published models have them, and small tokenizers that use them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gguf_audit.checkpoint import Json
from gguf_audit.gguf import ValueType
from gguf_audit.testing import FieldValue

__all__ = ["CL100K", "PUBLISHED", "byte_level", "regex", "steps", "vocabulary", "write_tokenizer"]

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = CL100K.replace("{1,3}", "")
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TAIL = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_TAIL}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_TAIL}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DIGITS: Json = {"type": "Digits", "individual_digits": True}


def regex(pattern: str, behavior: str = "Isolated", *, invert: bool = False) -> Json:
    """Return a step that splits by an expression."""
    found: Json = {"Regex": pattern}
    return {"type": "Split", "pattern": found, "behavior": behavior, "invert": invert}


def byte_level(*, regex: bool, prefix: bool = False) -> Json:
    """Return the step that turns text into letters for its bytes."""
    return {
        "type": "ByteLevel",
        "add_prefix_space": prefix,
        "trim_offsets": True,
        "use_regex": regex,
    }


def steps(*found: Json) -> Json:
    """Return several steps as one."""
    return {"type": "Sequence", "pretokenizers": list(found)}


#: Usual name -> pre-tokenizer and normalizer.
PUBLISHED: dict[str, tuple[Json, Json]] = {
    "llama-bpe": (steps(regex(CL100K), byte_level(regex=False)), None),
    "qwen2": (steps(regex(QWEN2), byte_level(regex=False)), {"type": "NFC"}),
    "gpt-2": (byte_level(regex=True), None),
    "starcoder": (steps(DIGITS, byte_level(regex=True)), None),
    "gpt-4o": (steps(regex(O200K, "Removed", invert=True), byte_level(regex=False)), None),
    "tekken": (
        steps(
            regex(O200K.replace(_TAIL, "").replace("{1,3}", "")),
            byte_level(regex=False),
        ),
        None,
    ),
    "falcon": (
        steps(
            {"type": "Punctuation", "behavior": "Contiguous"},
            byte_level(regex=True),
            {"type": "Digits", "individual_digits": False},
            regex("[0-9][0-9][0-9]"),
        ),
        None,
    ),
    "laguna": (
        steps(
            regex(r"(?:\r?\n)+(?!\r?\n)", "MergedWithNext"),
            regex(QWEN2),
            byte_level(regex=False),
        ),
        None,
    ),
    "minicpm5": (
        steps(
            regex(r"\p{N}{1,3}"),
            regex(CL100K.replace("{1,3}", "+")),
            byte_level(regex=False),
        ),
        None,
    ),
    "tiny_aya": (
        steps(regex(r"\d{1,3}(?=(?:\d{3})*\b)"), regex(O200K), byte_level(regex=False)),
        None,
    ),
    "bloom": (
        steps(
            regex(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"),
            byte_level(regex=False),
        ),
        None,
    ),
    "seed-coder": (
        steps(
            regex(
                CL100K.replace("{1,3}", "{1}").replace(
                    r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}\r\n]+"
                )
            ),
            byte_level(regex=False),
        ),
        None,
    ),
    "gemma4": (
        {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    ),
}


def _pieces() -> Iterator[tuple[str, str]]:
    """Yield tokens and the merges that make them: bytes, then runs of digits and letters."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(0x100) if byte not in letters)
    letters |= {byte: chr(0x100 + index) for index, byte in enumerate(others)}
    for byte in range(0x100):
        yield letters[byte], ""
    for first in "0123456789":
        for second in "0123456789":
            yield first + second, f"{first} {second}"
    for text in ("he", "ll", "\u0120t", "\u0120a", "\u0120\u0120", "\u010a\u010a", "''"):
        yield text, f"{text[0]} {text[1]}"
    for number in ("123", "345"):
        yield number, f"{number[:2]} {number[2]}"


CONTROL, ADDED = ("<|end|>", "[START]"), "<tool>"


def vocabulary(pre: str | None) -> dict[str, FieldValue]:
    """Return the keys of a right conversion of such a tokenizer."""
    pieces = [*_pieces()]
    tokens = [*(token for token, _ in pieces), *CONTROL, ADDED]
    keys: dict[str, FieldValue] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre or "",
        "tokenizer.ggml.tokens": (ValueType.STRING, tokens),
        "tokenizer.ggml.token_type": (ValueType.INT32, [1] * len(pieces) + [3, 3, 4]),
        "tokenizer.ggml.merges": (ValueType.STRING, [merge for _, merge in pieces if merge]),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.eos_token_id": (ValueType.UINT32, len(pieces)),
    }
    return {key: value for key, value in keys.items() if value != ""}


def write_tokenizer(
    folder: Path, pre_tokenizer: Json, normalizer: Json = None, *, ignore_merges: bool = False
) -> None:
    """Write ``tokenizer.json`` and its configuration into a checkpoint's folder."""
    pieces = [*_pieces()]
    added: list[Json] = [
        {
            "id": len(pieces) + index,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": content in CONTROL,
        }
        for index, content in enumerate((*CONTROL, ADDED))
    ]
    merges: list[Json] = [merge for _, merge in pieces if merge]
    document: dict[str, Json] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": byte_level(regex=False),
        "decoder": byte_level(regex=False),
        "model": {
            "type": "BPE",
            "ignore_merges": ignore_merges,
            "vocab": {token: index for index, (token, _) in enumerate(pieces)},
            "merges": merges,
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    configuration = {"eos_token": CONTROL[0], "add_bos_token": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration), "utf-8")
